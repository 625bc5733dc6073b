"""The audit log lists every event of bookings and waiting lists, newest first."""

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from slotlock.domain.booking.booking import BookingAction
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json, hours_from_now
from tests.support.model.stored_state import booking_history
from tests.support.scenarios.campaign_activity import (
    CampaignFixture,
    create_campaign_fixture,
    run_random_actions,
)
from tests.support.stores.empty_database import stored_database

Entry = tuple[Any, ...]
AUDIT_LOG = """query($filter: AuditLogFilter!, $first: Int! = 100, $after: String) {
  auditLog(filter: $filter, first: $first, after: $after) {
    nodes {
      at action bookingId before after heldUntil overriddenLimits overriddenRefusals
      by { id } user { id } slot { id }
    }
    pageInfo { hasNextPage endCursor }
  } }"""
# Another file tests the entries about organizer actions.
BOOKING_ACTIONS = [*BookingAction.__members__.keys() - {"SLOT_EDITED"}, "WAITLIST_JOINED"]


def unique_name() -> str:
    """Return a name that no other test uses."""
    return secrets.token_hex(4)


async def fetch_entries(organizer: BookingClient, filter_: Json, first: int = 100) -> list[Json]:
    """Return all matching entries, fetched in pages of `first` entries."""
    nodes: list[Json] = []
    after, more = None, True
    while more:
        booking_filter = {"actions": BOOKING_ACTIONS, **filter_}
        page = await organizer.execute(AUDIT_LOG, filter=booking_filter, first=first, after=after)
        nodes += page["nodes"]
        assert len(page["nodes"]) <= first
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    return nodes


def to_entry(node: Json) -> Entry:
    """Convert a GraphQL node to a tuple that tests compare."""
    by = node["by"] and node["by"]["id"][-24:]
    user, slot = node["user"]["id"][-24:], node["slot"]["id"][-24:]
    booking = node["bookingId"] and node["bookingId"][-24:]
    time = datetime.fromisoformat(node["at"])
    states = tuple(node[state] and node[state].lower() for state in ("before", "after"))
    return time, node["action"].lower(), by, user, slot, booking, *states


def booking_entries(booking: Json, slot: Any, booking_id: Any) -> list[Entry]:
    """Return the entries that a stored booking implies."""
    user, before = str(booking["user"]), ""
    entries: list[Entry] = []
    if booking.get("waitedSince"):
        entries.append(joined_entry(booking, booking["waitedSince"], slot))
    for record in booking_history(booking):
        ids = (record.by, user, str(slot), str(booking_id))
        entries.append((record.at, record.action, *ids, before or None, record.status))
        before = record.status
    return entries


def joined_entry(document: Json, time: datetime, slot: Any) -> Entry:
    """Return the entry of the user of a document who joins a waiting list."""
    user = str(document["user"])
    return time, "waitlist_joined", user, user, str(slot), None, None, None


def expected_entries(fixture: CampaignFixture) -> list[Entry]:
    """Return every entry of a campaign, computed from its documents."""
    slots = {slot["_id"]: slot for slot in fixture.slot_documents()}
    in_slots = {"slot": {"$in": list(slots)}}
    entries = []
    for slot_id, slot in slots.items():
        for booking in slot["bookings"]:
            log = booking_entries(booking, slot_id, booking["id"])
            if cancellation := slot.get("cancellation"):
                by, last = str(cancellation["by"]), log[-1]
                log.append((cancellation["at"], "cancelled", by, *last[3:6], last[-1], "cancelled"))
            entries += log
        for waiting in slot["waitlist"]:
            entries.append(joined_entry(waiting, waiting["since"], slot_id))
    for booking in fixture.documents("ended_bookings", **in_slots):
        entries += booking_entries(booking, booking["slot"], booking["_id"])
    for ended in fixture.documents("ended_waitlist_entries", **in_slots):
        entries.append(joined_entry(ended, ended["since"], ended["slot"]))
        by = ended["by"] and str(ended["by"])
        ids = (by, str(ended["user"]), str(ended["slot"]), None)
        entries.append((ended["at"], "waitlist_left", *ids, None, None))
    return entries


def in_fixed_order(entries: list[Entry]) -> list[Entry]:
    """Return the entries sorted so that entries of the same millisecond compare equal."""
    return sorted(entries, key=str)


@pytest.fixture
async def busy_campaign(two_apps: Pair, http: httpx.AsyncClient) -> CampaignFixture:
    """Return a campaign with 80 random actions and a cancelled slot."""
    fixture = await create_campaign_fixture(
        http, two_apps, unique_name(), member_count=8, slot_count=4
    )
    await run_random_actions(fixture, 60, 11)
    await fixture.organizer.cancel_slot(fixture.slot_ids[2])
    await run_random_actions(fixture, 20, 12)
    return fixture


async def test_the_log_of_a_campaign_has_every_event_of_its_documents(
    busy_campaign: CampaignFixture,
) -> None:
    nodes = await fetch_entries(
        busy_campaign.organizer, {"campaignId": busy_campaign.campaign_id}, first=7
    )
    times = [node["at"] for node in nodes]
    assert times == sorted(times, reverse=True)
    assert in_fixed_order([to_entry(node) for node in nodes]) == in_fixed_order(
        expected_entries(busy_campaign)
    )


async def test_each_filter_returns_the_matching_entries(busy_campaign: CampaignFixture) -> None:
    organizer, campaign = busy_campaign.organizer, busy_campaign.campaign_id
    all_entries = [
        to_entry(entry) for entry in await fetch_entries(organizer, {"campaignId": campaign})
    ]
    ada_id, organizer_id = (
        await busy_campaign.members[0].fetch_user_id(),
        await organizer.fetch_user_id(),
    )
    middle = all_entries[len(all_entries) // 2][0]
    time = middle.isoformat()
    cases: list[tuple[Json, Callable[[Entry], bool]]] = [
        (
            {"slotId": busy_campaign.slot_ids[2]},
            lambda e: bool(e[4] == busy_campaign.slot_ids[2][-24:]),
        ),
        ({"userId": ada_id}, lambda e: bool(e[3] == ada_id[-24:])),
        ({"by": organizer_id}, lambda e: bool(e[2] == organizer_id[-24:])),
        ({"by": ada_id}, lambda e: bool(e[2] == ada_id[-24:])),
        ({"byNobody": True}, lambda e: e[2] is None),
        ({"actions": ["CANCELLED", "MOVED"]}, lambda e: e[1] in ("cancelled", "moved")),
        ({"actions": ["WAITLIST_JOINED"]}, lambda e: bool(e[1] == "waitlist_joined")),
        ({"actions": []}, lambda _: False),
        (
            {"actions": ["BOOKED", "WAITLIST_LEFT"], "forOthers": True},
            lambda e: e[1] in ("booked", "waitlist_left") and e[2] not in (None, e[3]),
        ),
        ({"forOthers": True}, lambda e: e[2] not in (None, e[3])),
        ({"from": time}, lambda e: bool(e[0] >= middle)),
        ({"until": time}, lambda e: bool(e[0] < middle)),
        (
            {"by": organizer_id, "userId": ada_id, "until": time},
            lambda e: e[2:4] == (organizer_id[-24:], ada_id[-24:]) and bool(e[0] < middle),
        ),
    ]
    for filter_, matches in cases:
        nodes = await fetch_entries(organizer, {"campaignId": campaign, **filter_})
        expected = [entry for entry in all_entries if matches(entry)]
        assert in_fixed_order([to_entry(entry) for entry in nodes]) == in_fixed_order(expected), (
            filter_
        )
    # The filters also work without a campaign: these users acted only in this one.
    for field, id_, index in (("userId", ada_id, 3), ("by", ada_id, 2), ("by", organizer_id, 2)):
        nodes = await fetch_entries(organizer, {field: id_})
        assert in_fixed_order([to_entry(entry) for entry in nodes]) == in_fixed_order(
            [entry for entry in all_entries if entry[index] == id_[-24:]]
        )


async def test_an_entry_lists_overridden_limits(two_apps: Pair, http: httpx.AsyncClient) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    campaign = await create_campaign(organizer, opensAt=hours_from_now(1), eligibleGroups=[["5a"]])
    slot = await organizer.add_slot(campaignId=campaign)
    await organizer.book_slot(slot, userId=await ada.fetch_user_id())
    (entry,) = await fetch_entries(organizer, {"slotId": slot})
    limits = {"NOT_YET_OPEN", "NOT_ELIGIBLE"}
    assert set(entry["overriddenLimits"]) == set(entry["overriddenRefusals"]) == limits
    assert (entry["action"], entry["by"]["id"]) == ("BOOKED", await organizer.fetch_user_id())
    assert entry["user"]["id"] == await ada.fetch_user_id()


async def test_an_expired_hold_is_logged_once_before_and_after_its_cleanup(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(
        http, two_apps, unique_name(), member_count=2, slot_count=1
    )
    booking = await fixture.members[0].hold(fixture.slot_ids[0])
    fixture.expire_every_second_hold()  # no operation on the slot has removed it yet
    before_cleanup = await fetch_entries(fixture.organizer, {"slotId": fixture.slot_ids[0]})
    assert [entry["action"] for entry in before_cleanup] == ["EXPIRED", "HELD"]
    assert [entry["bookingId"] for entry in before_cleanup] == [booking["id"]] * 2
    page = await fixture.organizer.execute(
        AUDIT_LOG, filter={"slotId": fixture.slot_ids[0], "actions": BOOKING_ACTIONS}, first=1
    )
    await fixture.members[1].book_slot(fixture.slot_ids[0])
    after_cleanup = await fetch_entries(fixture.organizer, {"slotId": fixture.slot_ids[0]})
    assert after_cleanup[1:] == before_cleanup
    after = page["pageInfo"]["endCursor"]
    rest = await fixture.organizer.execute(
        AUDIT_LOG, filter={"slotId": fixture.slot_ids[0], "actions": BOOKING_ACTIONS}, after=after
    )
    assert rest["nodes"] == before_cleanup[1:]


async def test_no_page_skips_an_entry_of_the_same_booking_and_time(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    fixture = await create_campaign_fixture(
        http, two_apps, unique_name(), member_count=1, slot_count=1
    )
    (member,), slot_id = fixture.members, fixture.slot_ids[0]
    await member.confirm((await member.hold(slot_id))["id"])
    [slot] = fixture.slot_documents()
    held_at = slot["bookings"][0]["history"][0]["at"]
    at = {"$set": {"bookings.0.history.1.at": held_at}}
    stored_database(fixture.mongo_url)["slots"].update_one({"_id": slot["_id"]}, at)
    entries = await fetch_entries(fixture.organizer, {"slotId": slot_id}, first=1)
    assert [entry["action"] for entry in entries] == ["CONFIRMED", "HELD"]


@pytest.mark.parametrize(
    "invalid",
    [
        {"filter": {}},
        {"filter": {"actions": ["BOOKED"], "from": "2030-01-01T00:00:00Z"}},
        {"filter": {"byNobody": True}},
        {"filter": {"campaignId": "nonsense"}},
        {"filter": {"slotId": "user_" + "0" * 24}},
        {"filter": {"by": ""}},
    ],
)
async def test_invalid_audit_log_arguments_are_bad_user_input(
    organizer: BookingClient, invalid: Json
) -> None:
    variables = {"filter": {"userId": await organizer.fetch_user_id()}, **invalid}
    assert await organizer.error_code(AUDIT_LOG, **variables) == "BAD_USER_INPUT"


@pytest.mark.parametrize("kind", ["campaign", "slot", "user", "by"])
async def test_unknown_ids_have_no_log_entries(organizer: BookingClient, kind: str) -> None:
    prefix = "user" if kind == "by" else kind
    field = kind if kind == "by" else f"{kind}Id"
    all_time = {"from": "0001-01-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"}
    assert await fetch_entries(organizer, {field: f"{prefix}_{'0' * 24}", **all_time}) == []


MOVES = """query($slot: ID!) { auditLog(filter: {slotId: $slot, actions: [MOVED]}) {
  nodes { movedFrom { title } movedTo { title } }
} }"""


async def test_both_entries_of_a_move_name_the_other_slot(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, *two_apps)
    campaign = await create_campaign(organizer)
    slots = [
        await organizer.add_slot(title=title, campaignId=campaign, startTime=start, endTime=end)
        for title, start, end in (
            ("Chess", hours_from_now(30), hours_from_now(31)),
            ("Choir", hours_from_now(40), hours_from_now(41)),
            ("Art", hours_from_now(50), hours_from_now(51)),
        )
    ]
    booking = (await ada.book_slot(slots[0]))["booking"]
    for slot in slots[1:]:
        booking = (await organizer.move(booking["id"], slot))["booking"]
    logs = [
        [
            tuple(each[field] and each[field]["title"] for field in ("movedFrom", "movedTo"))
            for each in (await organizer.execute(MOVES, slot=slot))["nodes"]
        ]
        for slot in slots
    ]
    assert logs == [
        [(None, "Choir")],
        [(None, "Art"), ("Chess", None)],
        [("Choir", None)],
    ]
