"""Creating, changing, publishing and finding slots, and the permissions for it."""

from typing import Any

import pytest

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import CREATE_SLOT, GraphQLTestClient, hours_from_now, slot_input

UPDATE = """mutation($input: UpdateSlotInput!) {
  updateSlot(input: $input) {
    __typename
    ... on Slot { title capacity remaining location version startTime }
    ... on Refusal { code }
    ... on InvalidInput { fields { field } }
    ... on CapacityBelowTaken { taken }
  }
}"""
PUBLISH = "mutation($id: ID!) { publishSlot(slotId: $id) { __typename ... on Slot { status } } }"
CANCEL = "mutation($id: ID!) { cancelSlot(slotId: $id) { __typename ... on Slot { status } } }"
SLOT = "query($id: ID!) { slot(id: $id) { id title status myBooking { id } } }"
SLOTS = """query(
  $filter: SlotsFilter, $order: SlotOrder! = START_ASC, $first: Int! = 20, $after: String
) {
  slots(filter: $filter, orderBy: $order, first: $first, after: $after) {
    nodes { id title startTime }
    edges { cursor }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}"""


async def test_a_new_slot_has_its_input_and_times_in_utc(organizer: BookingClient) -> None:
    slot = await organizer.create_slot(
        title="  Йога ",
        startTime="2031-03-30T10:00:00+02:00",
        endTime="2031-03-30T11:30:00.500+02:00",
        timeZone="Europe/Berlin",
        capacity=12,
        location="Hall 2",
        kind="COURSE",
    )
    assert slot == {
        "__typename": "Slot",
        "id": slot["id"],
        "title": "Йога",
        "startTime": "2031-03-30T08:00:00.000Z",
        "endTime": "2031-03-30T09:30:00.500Z",
        "timeZone": "Europe/Berlin",
        "capacity": 12,
        "remaining": 12,
        "isBooked": False,
        "version": 1,
        "status": "PUBLISHED",
        "kind": "COURSE",
        "location": "Hall 2",
    }


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"title": " "}, {"title"}),
        ({"capacity": 0}, {"capacity"}),
        ({"capacity": 1001}, {"capacity"}),
        ({"endTime": "2001-01-01T00:00:00Z"}, {"endTime"}),
        ({"title": "a\u0000b", "location": "x" * 201}, {"title", "location"}),
    ],
)
async def test_an_invalid_slot_names_its_invalid_fields(
    organizer: BookingClient, wrong: dict[str, Any], fields: set[str]
) -> None:
    outcome = await organizer.execute(CREATE_SLOT, input={**slot_input(), **wrong})
    assert (outcome["__typename"], outcome["code"]) == ("InvalidInput", "INVALID_INPUT")
    assert {problem["field"] for problem in outcome["fields"]} == fields


@pytest.mark.parametrize(
    "wrong",
    [
        {"startTime": "2031-01-01T10:00:00"},
        {"startTime": "tomorrow"},
        {"startTime": "2031-02-30T10:00:00Z"},
        {"startTime": "0001-01-01T00:00:00+23:59"},
        {"startTime": 5},
        {"timeZone": "Mars/Olympus"},
        {"capacity": 2**40},
        {"capacity": 1.5},
        {"kind": "PARTY"},
        {"title": None},
        {"bookings": []},
    ],
)
async def test_a_malformed_slot_is_bad_user_input(
    organizer: BookingClient, wrong: dict[str, Any]
) -> None:
    code = await organizer.error_code(CREATE_SLOT, input={**slot_input(), **wrong})
    assert code == "BAD_USER_INPUT"


async def test_only_organizers_see_a_draft_until_it_is_published(
    organizer: BookingClient, member: BookingClient, anonymous: GraphQLTestClient
) -> None:
    slot_id = (await organizer.create_slot(draft=True))["id"]
    assert (await organizer.execute(SLOT, id=slot_id))["status"] == "DRAFT"
    for reader in (member, anonymous):
        assert await reader.execute(SLOT, id=slot_id) is None
        listed = await reader.send(SLOTS, filter={"status": "DRAFT"})
        assert listed["errors"][0]["extensions"]["code"] in ("FORBIDDEN", "UNAUTHENTICATED")
    assert (await member.book(slot_id))["__typename"] == "SlotNotFound"
    assert (await organizer.execute(PUBLISH, id=slot_id))["status"] == "PUBLISHED"
    assert await anonymous.execute(SLOT, id=slot_id)


async def test_a_cancelled_slot_cannot_be_booked_or_changed_and_its_bookings_are_cancelled(
    organizer: BookingClient, member: BookingClient
) -> None:
    slot_id = (await organizer.create_slot(capacity=2))["id"]
    booking_id = (await member.book(slot_id))["booking"]["id"]
    assert (await organizer.execute(CANCEL, id=slot_id))["status"] == "CANCELLED"
    assert (await organizer.book(slot_id))["__typename"] == "SlotCancelled"
    edit = {"slotId": slot_id, "title": "Again"}
    assert (await organizer.execute(UPDATE, input=edit))["code"] == "SLOT_CANCELLED"
    shown = await member.execute(
        "query($id: ID!) { node(id: $id) { ... on Booking { status } } }", id=booking_id
    )
    assert shown == {"status": "CANCELLED"}


async def all_titles(client: GraphQLTestClient, first: int, **variables: Any) -> list[str]:
    """Return the titles on all pages of a list with this page size."""
    titles: list[str] = []
    after = None
    while True:
        page = await client.execute(SLOTS, first=first, after=after, **variables)
        titles += [slot["title"] for slot in page["nodes"]]
        assert page["pageInfo"]["hasPreviousPage"] is (after is not None)
        if not page["pageInfo"]["hasNextPage"]:
            return titles
        after = page["pageInfo"]["endCursor"]


async def test_pages_have_no_gap_and_no_repeat_even_if_slots_start_together(
    organizer: BookingClient, anonymous: GraphQLTestClient
) -> None:
    start, end = hours_from_now(1000), hours_from_now(1001)
    for number in range(7):
        hour = {
            "startTime": start if number < 5 else hours_from_now(1002),
            "endTime": hours_from_now(1003),
        }
        await organizer.create_slot(title=f"paging {number}", **hour)
    slot_filter = {"startsFrom": start, "startsBefore": hours_from_now(1003), "text": "paging"}
    titles = [f"paging {number}" for number in range(7)]
    for first in (1, 2, 3, 100):
        assert await all_titles(anonymous, first, filter=slot_filter) == titles
        assert (
            await all_titles(anonymous, first, filter=slot_filter, order="START_DESC")
            == titles[::-1]
        )
    earlier = {**slot_filter, "startsBefore": end}
    assert await all_titles(anonymous, 2, filter=earlier) == titles[:5]


async def test_slots_are_found_by_kind_words_and_free_places(
    organizer: BookingClient, member: BookingClient, anonymous: GraphQLTestClient
) -> None:
    full = await organizer.create_slot(title="Zebra riding", kind="COURSE", location="Stable 9")
    await organizer.create_slot(title="Zebra watching", kind="MEETING", capacity=2)
    await member.book(full["id"])

    async def found(**slot_filter: Any) -> list[str]:
        return await all_titles(anonymous, 50, filter=slot_filter)

    assert await found(text="zebra") == ["Zebra riding", "Zebra watching"]
    assert await found(text="ZEB wat") == ["Zebra watching"]
    assert await found(text="stable zebra") == ["Zebra riding"]
    assert await found(text="zebra", kind="MEETING") == ["Zebra watching"]
    assert await found(text="zebra", onlyWithPlacesLeft=True) == ["Zebra watching"]
    assert await found(text="ebra") == []
    assert await found(text="zebra.*") == ["Zebra riding", "Zebra watching"]
    assert await found(text="?!") == []


async def test_a_search_text_has_at_most_200_characters(anonymous: GraphQLTestClient) -> None:
    assert await all_titles(anonymous, 1, filter={"text": "x" * 200}) == []
    too_long = {"text": "x" * 201}
    assert await anonymous.error_code(SLOTS, filter=too_long) == "BAD_USER_INPUT"
