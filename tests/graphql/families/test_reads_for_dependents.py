"""Guardians read what their dependents read, and nobody else does."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphql import get_named_type, is_composite_type, is_required_argument

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.booking_events import watch_bookings
from tests.support.clients.campaigns import (
    CLOSE,
    CONFIGURE,
    SET_WISHES,
    create_campaign,
    until_draw,
)
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, open_websocket
from tests.support.clients.series import create_series
from tests.support.scenarios.families import STRANGERS, Family, create_family
from tests.support.scenarios.led_course import CREATE_LED, change_document

SLOT = """slot { id meetingUrl cancelledForMe isLedByMe myBooking { id } myWaitlistEntry { id }
  myEligibility { mayBook refusal { code ... on AlreadyBooked { booking { id checkInCode } } } }
  series { slots { nodes { id myBooking { id } } } } }"""
BOOKING = f"id status checkInCode onBehalf history {{ at }} {SLOT}"
READS = {
    "myBookings": f"""($user: ID) {{
      myBookings(userId: $user) {{ totalCount nodes {{ {BOOKING} }} }} }}""",
    "myEndedBookings": f"""($user: ID) {{
      myEndedBookings(userId: $user) {{ totalCount nodes {{ {BOOKING} }} }} }}""",
    "myWaitlistEntries": f"""($user: ID) {{
      myWaitlistEntries(userId: $user) {{ totalCount nodes {{ id position {SLOT} }} }} }}""",
    "myMeetings": f"""($user: ID, $from: DateTime!, $until: DateTime!) {{
      myMeetings(userId: $user, from: $from, until: $until) {{
        startTime booking {{ {BOOKING} }} waitlistEntry {{ id }} {SLOT} }} }}""",
    "myWishes": """($user: ID, $campaign: ID!) { myWishes(userId: $user, campaignId: $campaign) {
      salt userIds ranked { slot { id myEligibility { mayBook } } } } }""",
    "myDrawResult": """($user: ID, $campaign: ID!) {
      myDrawResult(userId: $user, campaignId: $campaign) { salt leaf memberCount } }""",
}
NODE = f"""query($id: ID!) {{ node(id: $id) {{ id
  ... on Booking {{ checkInQr {BOOKING} }} ... on WaitlistEntry {{ position {SLOT} }} }} }}"""
HAS_WISHES = "query($id: ID!) { campaign(id: $id) { hasMyWishes } }"
WATCH_POSITIONS = """subscription($user: ID) {
  myWaitlistEntries(userId: $user) { position slot { myWaitlistEntry { id } } } }"""

CANCELLED = """query($slot: ID!) { slot(id: $slot) {
  familyPlaces { user { id } cancelled } } }"""
PLACES = """id remaining familyPlaces {
  user { id name } booking { id checkInCode slot { id title myBooking { id } } }
  waitlistEntry { id position } eligibility { mayBook refusal { code message } } }"""
FAMILY_PLACES = f"query($slot: ID!) {{ slot(id: $slot) {{ {PLACES} }} }}"
BOOK_FOR = """mutation($input: BookSlotInput!) { bookSlot(input: $input) { ... on Booked {
  booking { id checkInCode checkInQr calendarUrl history { at } madeAs madeBy { id } } } } }"""
READ_BOOKING = """query($id: ID!) { node(id: $id) { ... on Booking {
  id checkInCode checkInQr calendarUrl history { at } madeAs madeBy { id } } } }"""
LISTED_PLACES = f"""query($from: DateTime!, $before: DateTime!, $status: SlotStatus!) {{
  slots(filter: {{startsFrom: $from, startsBefore: $before, status: $status}}, first: 10) {{
    nodes {{ {PLACES} }} }} }}"""
OWN_PLACE = """query($slot: ID!) { slot(id: $slot) { myBooking { id checkInCode }
  myWaitlistEntry { id position } myEligibility { mayBook refusal { code message } } } }"""


@pytest.fixture
async def family(app: AppProcess, http: httpx.AsyncClient) -> Family:
    """Return a child with guardians."""
    return await create_family(app, http)


async def add_places(family: Family) -> dict[str, Any]:
    """Let the child have a place of each kind, and the mother some others.

    Return what the reads need, and the ids of a booking, an ended one and a waiting list entry.
    """
    child, organizer, mother = (family.clients[k] for k in ("child", "organizer", "mother"))
    campaign = await create_campaign(organizer, opensAt=hours_from_now(-1))
    wished = await organizer.add_slot(campaignId=campaign)
    room, mothers = f"Berg {secrets.token_hex(4)}", family.user_ids["mother"]
    await organizer.execute(CREATE_LED, name=room, leader=mothers)
    led = await organizer.add_slot(capacity=3, resource=room, meetingUrl="https://meet.example/1")
    full, called_off = [await organizer.add_slot(waitlistCapacity=3) for _ in range(2)]
    series = (await create_series(organizer, "FREQ=WEEKLY;COUNT=2", capacity=3))["slots"]
    of_series, other = (each["id"] for each in series)
    booked = [await child.book_slot(slot_id) for slot_id in (led, called_off, of_series)]
    for slot_id in (led, other):
        await mother.book_slot(slot_id)
    # The child leaves the second place, waits for it, and then nobody gets it.
    await child.cancel_booking(booked[1]["booking"]["id"])
    for slot_id in (full, called_off):
        await organizer.book_slot(slot_id)
    entry = await child.join(full)
    await child.join(called_off)
    await organizer.cancel_slot(called_off)
    until = hours_from_now(1)
    await organizer.execute(CONFIGURE, input={"campaignId": campaign, "wishesUntil": until})
    saved = await child.execute(SET_WISHES, id=campaign, slots=[wished])
    assert saved["__typename"] == "WishesSaved"
    return {
        "campaign": campaign,
        "from": hours_from_now(0),
        "until": hours_from_now(100),
        "booking": booked[0]["booking"]["id"],
        "ended": booked[1]["booking"]["id"],
        "entry": entry["entry"]["id"],
        "called off": called_off,
    }


def variables_of(name: str, places: dict[str, Any], user: str | None) -> Json:
    """Return the variables of a read."""
    return {"user": user} | {
        each: places[each] for each in ("campaign", "from", "until") if f"${each}:" in READS[name]
    }


async def test_guardians_read_each_list_as_their_dependent_does(family: Family) -> None:
    places, child_id = await add_places(family), family.user_ids["child"]
    family.set_guardians("child", "mother", "organizer")
    ended = await family.clients["child"].execute("query" + READS["myEndedBookings"])
    assert ended["nodes"][0]["slot"]["cancelledForMe"] is True
    off = await family.clients["mother"].execute(CANCELLED, slot=places["called off"])
    shown = [each["user"]["id"] for each in off["familyPlaces"] if each["cancelled"]]
    assert shown == [child_id]
    organizer = family.clients["organizer"]
    await organizer.execute(CLOSE, id=places["campaign"])
    await until_draw(organizer, places["campaign"], "root")
    for name, document in READS.items():
        own = await family.clients["child"].execute(
            "query" + document, **variables_of(name, places, None)
        )
        assert own if isinstance(own, list) else own.get("nodes", own)
        for kind in ("child", "mother", "organizer"):
            variables = variables_of(name, places, child_id)
            assert await family.clients[kind].execute("query" + document, **variables) == own
    for name in ("booking", "ended", "entry"):
        own = await family.clients["child"].execute(NODE, id=places[name])
        assert own["id"] == places[name]
        assert await family.clients["mother"].execute(NODE, id=places[name]) == own
        for kind in ("sibling", "other", "former", "member"):
            assert await family.clients[kind].execute(NODE, id=places[name]) is None


def reads_for_a_user() -> dict[str, str]:
    """Return a document of each query that reads for a user whom it may name."""
    assert executable_schema.query_type is not None
    found = {}
    for name, field in executable_schema.query_type.fields.items():
        if "userId" not in field.args or is_required_argument(field.args["userId"]):
            continue
        required = {key: arg for key, arg in field.args.items() if is_required_argument(arg)}
        declared = "".join(f", ${key}: {arg.type}" for key, arg in required.items())
        passed = "".join(f", {key}: ${key}" for key in required)
        selected = "{ __typename }" if is_composite_type(get_named_type(field.type)) else ""
        found[name] = f"query($user: ID{declared}) {{ {name}(userId: $user{passed}) {selected} }}"
    return found


async def refusals(family: Family, kind: str, user_id: str) -> dict[str, list[Json]]:
    """Return the errors of each read by somebody for a user."""
    variables = {
        "user": user_id,
        "campaignId": "campaign_" + "0" * 24,
        "from": hours_from_now(0),
        "until": hours_from_now(1),
    }
    return {
        name: (await family.clients[kind].send(document, **variables)).get("errors", [])
        for name, document in reads_for_a_user().items()
    }


async def test_users_who_do_not_exist_and_those_of_others_are_refused_alike(
    family: Family, log_dir: Path
) -> None:
    assert reads_for_a_user().keys() == READS.keys()
    unknown = await refusals(family, "mother", "user_" + "0" * 24)
    for errors in unknown.values():
        assert [each["extensions"]["code"] for each in errors] == ["FORBIDDEN"]
    assert await refusals(family, "mother", "") == unknown
    for kind in STRANGERS:
        assert await refusals(family, kind, family.user_ids["child"]) == unknown
    assert not any((await refusals(family, "father", family.user_ids["child"])).values())
    # A dependent reads nothing for a guardian.
    assert await refusals(family, "child", family.user_ids["mother"]) == unknown
    with app_variant(
        family.app.environment, log_dir, without_guards="reads-of-guardians"
    ) as unguarded:
        family.clients["former"].url = unguarded.url
        assert not any((await refusals(family, "former", family.user_ids["child"])).values())


async def test_a_subscription_for_a_dependent_ends_before_what_follows_the_removal(
    family: Family, log_dir: Path
) -> None:
    child, mother, organizer = (family.clients[k] for k in ("child", "mother", "organizer"))
    child_id = family.user_ids["child"]
    full = await organizer.add_slot(waitlistCapacity=5)
    await organizer.book_slot(full)
    for kind in ("other", "former", "child"):
        await family.clients[kind].join(full)

    async def watched(app: AppProcess) -> list[bool]:
        """Return whether each stream ended at what happened after the removal."""
        family.set_guardians("child", "mother")
        async with (
            watch_bookings(app, mother, organizer, read_for=child_id) as bookings,
            open_websocket(app, mother.token) as opened,
        ):
            await opened.subscribe("1", WATCH_POSITIONS, user=child_id)
            before = await opened.next_result()
            assert before["slot"]["myWaitlistEntry"] is not None
            slot_id = await organizer.add_slot()
            booking = (await child.book_slot(slot_id))["booking"]
            assert (await bookings.next_event())["booking"]["id"] == booking["id"]
            family.set_guardians("child", "father")
            await child.cancel_booking(booking["id"])
            ended = await bookings.next_event_or_end() is None
            await family.clients["other" if before["position"] == 3 else "former"].leave(full)
            return [ended, (await opened.receive())["type"] == "complete"]

    assert await watched(family.app) == [True, True]
    with app_variant(
        family.app.environment, log_dir, without_guards="reads-of-guardians"
    ) as unguarded:
        assert await watched(unguarded) == [False, False]


async def test_what_a_guardian_does_is_no_event_for_them_and_what_the_dependent_does_is_one(
    family: Family, http: httpx.AsyncClient
) -> None:
    child, child_id = family.clients["child"], family.user_ids["child"]
    _, guardian = create_booking_clients(http, 0, family.app)
    family.user_ids["guardian"] = await guardian.fetch_user_id()
    family.set_guardians("child", "guardian")
    slot_id = await guardian.add_slot()
    organizer = family.clients["organizer"]
    async with watch_bookings(family.app, guardian, organizer, read_for=child_id) as stream:
        booking = (await guardian.book_slot(slot_id, userId=child_id))["booking"]
        await child.cancel_booking(booking["id"])
        assert await stream.next_event_summary() == ("CANCELLED", child_id, slot_id, "CANCELLED")


async def test_siblings_wish_together_or_one_by_one(family: Family) -> None:
    mother, organizer = family.clients["mother"], family.clients["organizer"]
    mia, ben = family.user_ids["child"], family.user_ids["sibling"]
    campaign = await create_campaign(organizer, opensAt=hours_from_now(-1))
    slots = [await organizer.add_slot(campaignId=campaign, capacity=5) for _ in range(2)]
    until = hours_from_now(1)
    await organizer.execute(CONFIGURE, input={"campaignId": campaign, "wishesUntil": until})

    async def wish(kind: str, users: list[str] | None, *ranks: int) -> Any:
        ranked = [slots[n] for n in ranks]
        return await family.clients[kind].execute(
            SET_WISHES, id=campaign, slots=ranked, users=users
        )

    async def wishes() -> dict[str, list[str] | None]:
        """Return with whom each of the family wishes, as the mother reads it."""
        document = "query" + READS["myWishes"]
        found = {
            kind: await mother.execute(document, user=family.user_ids[kind], campaign=campaign)
            for kind in ("mother", "child", "sibling")
        }
        return {kind: each and each["userIds"] for kind, each in found.items()}

    me = family.user_ids["mother"]
    assert (await mother.execute(HAS_WISHES, id=campaign))["hasMyWishes"] is False
    assert (await wish("mother", None, 0))["wishes"]["userIds"] == [me]
    assert (await wish("mother", [mia], 1))["wishes"]["userIds"] == [mia]
    assert await wishes() == {"mother": [me], "child": [mia], "sibling": None}
    assert (await family.clients["father"].execute(HAS_WISHES, id=campaign))["hasMyWishes"] is True
    assert (await family.clients["other"].execute(HAS_WISHES, id=campaign))["hasMyWishes"] is False
    # One entry of both replaces that of one, and leaves the mother's own.
    both = await wish("mother", [ben, mia, mia], 0, 1)
    together = sorted([mia, ben])
    assert sorted(both["wishes"]["userIds"]) == together
    assert await wishes() == {"mother": [me], "child": together, "sibling": together}
    # The salt is what the entry is found by.
    again = await wish("mother", [mia, ben], 1)
    assert again["wishes"]["salt"] == both["wishes"]["salt"]
    # A list replaces any other, or only the one that the client saw.
    document = {"id": campaign, "slots": slots, "users": [mia]}
    for changed_at in (None, both["wishes"]["changedAt"]):
        late = await mother.execute(SET_WISHES, **document, seen=changed_at)
        assert late["fields"] == [{"field": "expectedChangedAt", "code": "WISHES_CHANGED"}]
    seen = again["wishes"]["changedAt"]
    saved = await mother.execute(SET_WISHES, **{**document, "users": [ben, mia]}, seen=seen)
    assert saved["__typename"] == "WishesSaved"
    for kind, users, stranger in (
        ("father", [mia, ben], ben),
        ("former", [mia], mia),
        ("sibling", [mia], mia),
        ("mother", [mia, family.user_ids["other"]], family.user_ids["other"]),
        ("mother", ["nobody"], "nobody"),
    ):
        refused = await wish(kind, users, 0)
        assert (refused["code"], refused["userId"]) == ("NOT_TEAMMATE", stranger)
    for users in ([], [mia] * 22):
        document = {"id": campaign, "slots": slots, "users": users}
        assert await mother.error_code(SET_WISHES, **document) == "BAD_USER_INPUT"
    assert await wishes() == {"mother": [me], "child": together, "sibling": together}
    assert (await wish("mother", [mia, ben]))["wishes"] is None
    assert await wishes() == {"mother": [me], "child": None, "sibling": None}
    # What another guardian does for one of them ends nothing of the other.
    for ranks, mias in (((1,), [mia]), ((), None)):
        await wish("mother", [mia, ben], 0, 1)
        assert (await wish("father", [mia], *ranks))["__typename"] == "WishesSaved"
        assert await wishes() == {"mother": [me], "child": mias, "sibling": [ben]}
    # So it is with what one of them does alone, also the guardian.
    for users, kind in (([mia, ben], "child"), ([me, ben], "mother")):
        for ranks in ((1,), ()):
            await wish("mother", users, 0, 1)
            assert (await wish(kind, None, *ranks))["__typename"] == "WishesSaved"
            found = await wishes()
            assert found[kind] == ([family.user_ids[kind]] if ranks else None)
            assert found["sibling"] == [ben]


async def family_places(family: Family, kind: str, slot_id: str) -> dict[str, Json]:
    """Return the places that somebody sees in a slot by the kind of user, in their order."""
    found = await family.clients[kind].execute(FAMILY_PLACES, slot=slot_id)
    kinds = {user_id: kind for kind, user_id in family.user_ids.items()}
    return {kinds[each["user"]["id"]]: each for each in found["familyPlaces"]}


async def test_a_slot_shows_the_places_of_the_caller_and_of_each_dependent(
    family: Family,
) -> None:
    child, sibling, organizer = (family.clients[k] for k in ("child", "sibling", "organizer"))
    slot_id = await organizer.add_slot(waitlistCapacity=5)
    free = await organizer.add_slot(capacity=2)
    booking_id = (await child.book_slot(slot_id))["booking"]["id"]
    await sibling.join(slot_id)
    for kind, others in (
        ("mother", {"child", "sibling"}),
        ("father", {"child"}),
        ("other", {"sibling"}),
        ("former", set()),
        ("child", set()),
        ("organizer", set()),
    ):
        places = await family_places(family, kind, slot_id)
        assert (next(iter(places)), set(places)) == (kind, {kind, *others})
    places = await family_places(family, "mother", slot_id)
    assert places["mother"]["booking"] is places["mother"]["waitlistEntry"] is None
    assert places["child"]["booking"]["slot"]["id"] == slot_id
    assert places["child"]["booking"]["slot"]["myBooking"] == {"id": booking_id}
    for kind in ("mother", "child", "sibling"):
        place, own = places[kind], await family.clients[kind].execute(OWN_PLACE, slot=slot_id)
        shown = place["booking"] and {key: place["booking"][key] for key in ("id", "checkInCode")}
        assert (shown, place["waitlistEntry"]) == (own["myBooking"], own["myWaitlistEntry"])
        eligibility, own = place["eligibility"], own["myEligibility"]
        assert eligibility["mayBook"] == own["mayBook"]
        assert eligibility["refusal"]["code"] == own["refusal"]["code"]
    # A guardian reads of a child, and not of themselves.
    message = places["child"]["eligibility"]["refusal"]["message"]
    assert message == "This user already has a booking in this slot."
    is_free = await family_places(family, "mother", free)
    assert [each["eligibility"]["mayBook"] for each in is_free.values()] == [True] * 3
    change_document(family.app, "users", family.user_ids["sibling"], bannedAt=datetime.now(UTC))
    banned = (await family_places(family, "mother", free))["sibling"]["eligibility"]
    assert (banned["mayBook"], banned["refusal"]["code"]) == (False, "USER_BANNED")
    anonymous = GraphQLTestClient(child.http, child.url)
    assert (await anonymous.execute(FAMILY_PLACES, slot=slot_id))["familyPlaces"] == []


async def test_the_result_of_a_booking_for_a_dependent_has_its_codes(family: Family) -> None:
    child, mother = family.clients["child"], family.clients["mother"]
    child_id = family.user_ids["child"]
    slot_id = await family.clients["organizer"].add_slot()
    booked = await mother.execute(BOOK_FOR, input={"slotId": slot_id, "userId": child_id})
    assert booked["booking"]["checkInCode"]
    booking_id, link = booked["booking"]["id"], booked["booking"].pop("calendarUrl")
    own = await child.execute(READ_BOOKING, id=booking_id)
    own_link = own.pop("calendarUrl")
    assert booked["booking"] == own
    # Each has a link of their own, whose code opens nothing under the other address.
    folder, _, code = link.rpartition("/")
    own_folder, _, own_code = own_link.rpartition("/")
    addresses = (link, own_link, f"{own_folder}/{code}", f"{folder}/{own_code}")
    found = [await child.http.get(child.url + each) for each in addresses]
    assert [each.status_code for each in found] == [200, 200, 404, 404]
    assert ["SUMMARY:Somebody: A slot" in each.text for each in found[:2]] == [True, False]


async def test_a_list_shows_of_a_family_what_each_slot_alone_shows(family: Family) -> None:
    organizer, hour = family.clients["organizer"], 90_000 + secrets.randbelow(10_000)
    start, end = hours_from_now(hour), hours_from_now(hour + 1)
    times = {"startTime": start, "endTime": end}
    capacities = ({"capacity": 4}, {"capacity": 4}, {"capacity": 1, "waitlistCapacity": 5})
    slots = [await organizer.add_slot(**fields, **times) for fields in capacities]
    bookings = [
        (await family.clients[kind].book_slot(slots[number]))["booking"]["id"]
        for kind, number in (("child", 0), ("sibling", 0), ("sibling", 1), ("child", 2))
    ]
    entry = (await family.clients["sibling"].join(slots[2]))["entry"]["id"]
    # This one is read again, as for a decision.
    due = datetime.now(UTC) - timedelta(seconds=1)
    change_document(family.app, "slots", slots[1], nextDeadline=due)

    kinds_of = {user_id: kind for kind, user_id in family.user_ids.items()}

    async def listed(kind: str, status: str = "PUBLISHED") -> list[dict[str, Json]]:
        """Return the ids of the bookings and entries of a family, by slot and user."""
        variables = {"from": start, "before": end, "status": status}
        found = (await family.clients[kind].execute(LISTED_PLACES, **variables))["nodes"]
        for each in found:
            assert each == await family.clients[kind].execute(FAMILY_PLACES, slot=each["id"])
        found.sort(key=lambda each: slots.index(each["id"]))
        return [
            {
                kinds_of[place["user"]["id"]]: place[part]["id"]
                for place in each["familyPlaces"]
                for part in ("booking", "waitlistEntry")
                if place[part]
            }
            for each in found
        ]

    first, bens, bens_second, mias_second = bookings
    assert await listed("mother") == [
        {"child": first, "sibling": bens},
        {"sibling": bens_second},
        {"child": mias_second, "sibling": entry},
    ]
    # An organizer sees a draft, and a dependent of theirs does not.
    change_document(family.app, "slots", slots[0], status="draft")
    family.set_guardians("child", "organizer")
    assert await listed("organizer", "DRAFT") == [{}]
    assert await listed("organizer") == [{}, {"child": mias_second}]
