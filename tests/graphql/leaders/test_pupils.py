"""A leader finds and books the users of the campaign's groups, by the rules that hold for them."""

from datetime import UTC, datetime, timedelta

import httpx

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, update_campaign
from tests.support.clients.client import Json, times_in
from tests.support.clients.exports import set_name_and_groups
from tests.support.scenarios.led_course import LedCourse, change_document, led_course

BOOKABLE = """query($slot: ID!, $text: String, $first: Int! = 20, $after: String) {
  bookableUsers(slotId: $slot, text: $text, first: $first, after: $after) {
    nodes { id name groups email username } pageInfo { hasNextPage endCursor }
  }
}"""
RENAME = """mutation($id: ID!, $name: String!) {
  updateUser(input: {userId: $id, name: $name}) { __typename }
}"""
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
NOBODY_CAN_BOOK = "This user is banned. Nobody can book for them."
ROSTER = """query($slot: ID!) { slotRoster(slotId: $slot) { nodes {
  id madeAs user { name } madeBy { id }
} } }"""


async def led_campaign(
    app: AppProcess, http: httpx.AsyncClient, **rules: object
) -> tuple[LedCourse, str, str]:
    """Return a course, its campaign, whose leaders book all of year 5, and another slot of it.

    The users are Ada of 5a (`self`), Ben of 6b (`teammate`) and Cleo of 5b (`member`).
    """
    course = await led_course(app, http)
    organizer, url = course.clients["organizer"], app.environment["SLOTLOCK_MONGO_URL"]
    for kind, name, group in (("self", "Ada Löwe", "5a"), ("teammate", "Ben Berg", "6b"),
                              ("member", "Cleo Ada", "5b")):  # fmt: skip
        await set_name_and_groups(url, course.clients[kind], "Somebody", f"{group} {course.tag}")
        await organizer.execute(RENAME, id=course.user_ids[kind], name=name)
    campaign_id = await create_campaign(
        organizer, leaderGroups=[f"5a {course.tag}", f"5b {course.tag[:6]}*"], **rules
    )
    slots = []
    for resource, hours in ((course.resource, 30), (course.other_resource, 40)):
        fields = {"campaignId": campaign_id, "resource": resource, "capacity": 5, **times_in(hours)}
        slots.append(await organizer.add_slot(**fields))
    return course, *slots  # type: ignore[return-value]


async def names(client: BookingClient, slot_id: str, text: str | None = None) -> list[str]:
    """Return the names of the users whom a leader may book."""
    found: Json = await client.execute(BOOKABLE, slot=slot_id, text=text)
    assert all(node["email"] is node["username"] is None for node in found["nodes"])
    assert all(len(node["groups"]) == 1 for node in found["nodes"])
    return [node["name"] for node in found["nodes"]]


async def test_a_leader_finds_the_users_of_the_groups_by_name_and_no_address(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http)
    leader = course.clients["leader"]
    assert await names(leader, slot_id) == ["Ada Löwe", "Cleo Ada"]
    assert await names(leader, slot_id, "low ada") == ["Ada Löwe"]
    for text in ("\u0301", "\0"):  # nothing of a word
        assert await names(leader, slot_id, text) == ["Ada Löwe", "Cleo Ada"]
    email = (await course.clients["self"].execute("{ me { email } }"))["email"]
    assert await names(leader, slot_id, email) == await names(leader, slot_id, "slotlock") == []
    first = await leader.execute(BOOKABLE, slot=slot_id, first=1)
    rest = await leader.execute(BOOKABLE, slot=slot_id, after=first["pageInfo"]["endCursor"])
    assert [each["name"] for each in rest["nodes"]] == ["Cleo Ada"]
    assert first["pageInfo"]["hasNextPage"]
    # This course belongs to no campaign.
    assert await names(leader, course.slot_id) == []
    # A course that is over shows its roster, and finds nobody any more.
    ended = datetime.now(UTC) - timedelta(hours=1)
    change_document(app, "slots", slot_id, start=ended, end=ended)
    assert await names(leader, slot_id) == []
    assert (await leader.execute(ROSTER, slot=slot_id))["nodes"] == []
    for kind in ("self", "other", "former"):
        assert await course.clients[kind].error_code(BOOKABLE, slot=slot_id) == "FORBIDDEN"
    assert await leader.error_code(BOOKABLE, slot=other_id) == "FORBIDDEN"


async def test_a_leader_books_by_the_rules_and_manages_what_they_booked(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http, maxBookings=1)
    leader, ada, cleo = (course.clients[each] for each in ("leader", "self", "member"))
    booked = (await leader.book_slot(slot_id, userId=course.user_ids["self"]))["booking"]
    own = (await cleo.book_slot(slot_id))["booking"]
    nodes = (await leader.execute(ROSTER, slot=slot_id))["nodes"]
    assert [(each["user"]["name"], each["madeAs"]) for each in nodes] == [
        ("Ada Löwe", "LEADER"), ("Cleo Ada", None),
    ]  # fmt: skip
    seen = await ada.fetch_booking(booked["id"])
    assert seen["madeBy"]["id"] == course.user_ids["leader"]
    for user_id, code in (
        (course.user_ids["teammate"], "NOT_TEAMMATE"),  # of no group that leaders book
        ("user_" + "0" * 24, "NOT_TEAMMATE"),
        (course.user_ids["self"], "ALREADY_BOOKED"),
    ):
        assert (await leader.book_slot(slot_id, userId=user_id))["code"] == code
    elsewhere = await leader.book_slot(other_id, userId=course.user_ids["self"])
    assert elsewhere["code"] == "NOT_TEAMMATE"
    # The limit of the campaign holds for Ada, and organizers override it.
    limited = await course.clients["other"].book_slot(other_id, userId=course.user_ids["self"])
    assert limited["code"] == "LIMIT_REACHED"
    assert (await leader.move(booked["id"], other_id))["code"] == "SLOT_NOT_FOUND"
    assert (await leader.cancel_booking(own["id"]))["code"] == "BOOKING_NOT_FOUND"
    assert (await leader.confirm(booked["id"]))["__typename"] == "BookingConfirmed"
    assert (await leader.cancel_booking(booked["id"]))["__typename"] == "BookingCancelled"


async def test_a_leader_moves_a_pupil_between_their_courses_and_none_who_is_banned(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    booked = (await leader.book_slot(slot_id, userId=course.user_ids["self"]))["booking"]
    await organizer.update_slot(other_id, resource=course.resource)
    moved = await leader.move(booked["id"], other_id)
    assert moved["__typename"] == "BookingMoved"
    (node,) = (await leader.execute(ROSTER, slot=other_id))["nodes"]
    assert (node["id"], node["madeAs"]) == (moved["booking"]["id"], "LEADER")
    cleo = course.user_ids["member"]
    held = (await leader.book_slot(slot_id, userId=cleo, hold=True))["booking"]
    await organizer.execute(BAN, user=cleo)
    for change in (leader.confirm(held["id"]), leader.move(held["id"], other_id)):
        refused = await change
        assert (refused["code"], refused["message"]) == ("USER_BANNED", NOBODY_CAN_BOOK)
    assert (await leader.cancel_booking(held["id"]))["__typename"] == "BookingCancelled"


async def test_a_leader_reads_what_they_book_as_its_booker_in_each_answer(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http)
    await course.clients["organizer"].update_slot(other_id, resource=course.resource)
    leader, (ada, cleo) = course.clients["leader"], (course.user_ids[k] for k in ("self", "member"))
    booker = {"id": course.user_ids["leader"]}
    held = await leader.book_slot(slot_id, userId=ada, hold=True, idempotencyKey="hold")
    first, second = held["booking"]["id"], {"slotId": other_id, "userId": cleo}

    async def answers() -> list[Json]:
        return [
            await leader.book_slot(slot_id, userId=ada, hold=True, idempotencyKey="hold"),
            await leader.confirm(first, key="confirm"),
            await leader.move(first, other_id, idempotencyKey="move"),
            await leader.book_all(second, {**second, "slotId": slot_id}, idempotencyKey="both"),
        ]

    once = await answers()
    places = [each for one in once for each in one.get("bookings", [one.get("booking")])]
    assert [(each["madeBy"], bool(each["history"])) for each in places] == [(booker, True)] * 5
    assert once[2]["oldBooking"]["movedTo"] == (moved := places[2])["id"]
    assert (once[0], once) == (held, await answers())
    assert await leader.fetch_booking(moved["id"]) == moved
    await course.set_leader("other")
    for kind in ("leader", "other"):
        assert await course.clients[kind].fetch_booking(moved["id"]) is None
    again = await answers()
    assert again[0]["booking"]["madeBy"] is again[2]["booking"]["madeBy"] is None


async def test_places_for_several_are_all_or_none_and_each_slot_is_asked_for(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, other_id = await led_campaign(app, http)
    leader, ada, cleo = course.clients["leader"], *(course.user_ids[k] for k in ("self", "member"))
    refused = await leader.book_all(
        {"slotId": slot_id, "userId": ada}, {"slotId": other_id, "userId": ada}
    )
    assert [(each["claim"], each["refusal"]["code"]) for each in refused["refusals"]] == [
        (1, "NOT_TEAMMATE")
    ]
    both = await leader.book_all(*({"slotId": slot_id, "userId": each} for each in (ada, cleo)))
    assert both["__typename"] == "AllBooked"
    nodes = (await leader.execute(ROSTER, slot=slot_id))["nodes"]
    assert {each["madeAs"] for each in nodes} == {"LEADER"}


async def test_without_groups_leaders_find_and_book_nobody(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    course, slot_id, _ = await led_campaign(app, http)
    leader, organizer = course.clients["leader"], course.clients["organizer"]
    campaign = await organizer.execute(
        "query($id: ID!) { slot(id: $id) { campaign { id leaderGroups } } }", id=slot_id
    )
    assert len(campaign["campaign"]["leaderGroups"]) == 2
    await update_campaign(organizer, campaign["campaign"]["id"], leaderGroups=[])
    assert await names(leader, slot_id) == []
    refused = await leader.book_slot(slot_id, userId=course.user_ids["self"])
    assert refused["code"] == "NOT_TEAMMATE"
