"""Slots over HTTP: who may create and change them, and how people find them."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import (
    CREATE_SLOT,
    GraphQLTestClient,
    Json,
    hours_from_now,
    slot_input,
)
from tests.support.stores.users import create_user_tokens

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
CALL_OFF = "mutation($id: ID!) { cancelSlot(slotId: $id) { __typename ... on Slot { status } } }"
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


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Somebody who keeps slots."""
    return GraphQLTestClient(
        http, app.url, (await create_user_tokens(app.environment, 0)).organizer
    )


@pytest.fixture
async def member(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Somebody who books."""
    return GraphQLTestClient(
        http, app.url, (await create_user_tokens(app.environment, 1)).members[0]
    )


@pytest.fixture
def anonymous(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """A visitor."""
    return GraphQLTestClient(http, app.url)


async def test_only_organisers_create_and_change_slots(
    organizer: GraphQLTestClient, member: GraphQLTestClient, anonymous: GraphQLTestClient
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    changes: list[tuple[str, Json]] = [
        (CREATE_SLOT, {"input": slot_input()}),
        (UPDATE, {"input": {"slotId": slot_id, "title": "Mine"}}),
        (PUBLISH, {"id": slot_id}),
        (CALL_OFF, {"id": slot_id}),
        ("query($id: ID!) { slotRoster(slotId: $id) { nodes { id } } }", {"id": slot_id}),
    ]
    for query, variables in changes:
        assert await member.error_code(query, **variables) == "FORBIDDEN"
        assert await anonymous.error_code(query, **variables) == "UNAUTHENTICATED"


async def test_a_slot_is_answered_as_it_was_filled_in_with_times_in_utc(
    organizer: GraphQLTestClient,
) -> None:
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
async def test_what_is_wrong_with_a_new_slot_is_data_field_by_field(
    organizer: GraphQLTestClient, wrong: dict[str, Any], fields: set[str]
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
async def test_what_cannot_be_a_slot_at_all_is_bad_user_input(
    organizer: GraphQLTestClient, wrong: dict[str, Any]
) -> None:
    code = await organizer.error_code(CREATE_SLOT, input={**slot_input(), **wrong})
    assert code == "BAD_USER_INPUT"


async def test_an_edit_changes_the_named_fields_only(organizer: GraphQLTestClient) -> None:
    slot = await organizer.create_slot(location="Hall 1", capacity=3)
    edited = await organizer.execute(UPDATE, input={"slotId": slot["id"], "title": "New"})
    assert (edited["title"], edited["location"], edited["capacity"]) == ("New", "Hall 1", 3)
    edited = await organizer.execute(UPDATE, input={"slotId": slot["id"], "location": None})
    assert (edited["title"], edited["location"], edited["version"]) == ("New", None, 3)
    nulled = {"slotId": slot["id"], "capacity": None}
    assert await organizer.error_code(UPDATE, input=nulled) == "BAD_USER_INPUT"


async def test_the_capacity_never_falls_below_what_is_taken(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot(capacity=3)
    crowd = await create_user_tokens(app.environment, 2)
    for token in crowd.members:
        await GraphQLTestClient(organizer.http, app.url, token).book(slot["id"])
    refused = await organizer.execute(UPDATE, input={"slotId": slot["id"], "capacity": 1})
    assert (refused["__typename"], refused["taken"]) == ("CapacityBelowTaken", 2)
    kept = await organizer.execute(UPDATE, input={"slotId": slot["id"], "capacity": 2})
    assert (kept["capacity"], kept["remaining"]) == (2, 0)


async def test_a_draft_is_there_for_organisers_only_until_it_is_published(
    organizer: GraphQLTestClient, member: GraphQLTestClient, anonymous: GraphQLTestClient
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


async def test_a_slot_called_off_cannot_be_booked_or_changed_and_its_bookings_are_cancelled(
    organizer: GraphQLTestClient, member: GraphQLTestClient
) -> None:
    slot_id = (await organizer.create_slot(capacity=2))["id"]
    booking_id = (await member.book(slot_id))["booking"]["id"]
    assert (await organizer.execute(CALL_OFF, id=slot_id))["status"] == "CANCELLED"
    assert (await organizer.book(slot_id))["__typename"] == "SlotCancelled"
    edit = {"slotId": slot_id, "title": "On again"}
    assert (await organizer.execute(UPDATE, input=edit))["code"] == "SLOT_CANCELLED"
    shown = await member.execute(
        "query($id: ID!) { node(id: $id) { ... on Booking { status } } }", id=booking_id
    )
    assert shown == {"status": "CANCELLED"}


async def walk(client: GraphQLTestClient, first: int, **variables: Any) -> list[str]:
    """The titles on all pages of a list."""
    titles: list[str] = []
    after = None
    while True:
        page = await client.execute(SLOTS, first=first, after=after, **variables)
        titles += [slot["title"] for slot in page["nodes"]]
        assert page["pageInfo"]["hasPreviousPage"] is (after is not None)
        if not page["pageInfo"]["hasNextPage"]:
            return titles
        after = page["pageInfo"]["endCursor"]


async def test_pages_follow_each_other_without_gap_or_repeat_even_when_slots_start_together(
    organizer: GraphQLTestClient, anonymous: GraphQLTestClient
) -> None:
    start, end = hours_from_now(1000), hours_from_now(1001)
    for number in range(7):
        hour = {
            "startTime": start if number < 5 else hours_from_now(1002),
            "endTime": hours_from_now(1003),
        }
        await organizer.create_slot(title=f"walk {number}", **hour)
    wanted = {"startsFrom": start, "startsBefore": hours_from_now(1003), "text": "walk"}
    every = [f"walk {number}" for number in range(7)]
    for first in (1, 2, 3, 100):
        assert await walk(anonymous, first, filter=wanted) == every
        assert await walk(anonymous, first, filter=wanted, order="START_DESC") == every[::-1]
    earlier = {**wanted, "startsBefore": end}
    assert await walk(anonymous, 2, filter=earlier) == every[:5]


async def test_slots_are_found_by_kind_by_words_and_by_places_left(
    organizer: GraphQLTestClient, member: GraphQLTestClient, anonymous: GraphQLTestClient
) -> None:
    full = await organizer.create_slot(title="Zebra riding", kind="COURSE", location="Stable 9")
    await organizer.create_slot(title="Zebra watching", kind="MEETING", capacity=2)
    await member.book(full["id"])

    async def found(**wanted: Any) -> list[str]:
        return await walk(anonymous, 50, filter=wanted)

    assert await found(text="zebra") == ["Zebra riding", "Zebra watching"]
    assert await found(text="ZEB wat") == ["Zebra watching"]
    assert await found(text="stable zebra") == ["Zebra riding"]
    assert await found(text="zebra", kind="MEETING") == ["Zebra watching"]
    assert await found(text="zebra", onlyWithPlacesLeft=True) == ["Zebra watching"]
    assert await found(text="ebra") == []
    assert await found(text="zebra.*") == ["Zebra riding", "Zebra watching"]
    assert await found(text="?!") == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"first": 0},
        {"first": 101},
        {"first": -1},
        {"after": "nonsense"},
        {"after": "W10="},
        {"after": "WzEsMl0="},
        {"after": "WzFlMzAwLCIwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAiXQ=="},
        {"filter": {"text": "x" * 201}},
    ],
)
async def test_a_page_that_cannot_be_is_bad_user_input(
    anonymous: GraphQLTestClient, arguments: dict[str, Any]
) -> None:
    assert await anonymous.error_code(SLOTS, **arguments) == "BAD_USER_INPUT"
