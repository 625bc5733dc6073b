"""What a selection of a slot reads, and what of it teammates do not see."""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace

import httpx
import pytest
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    GraphQLObjectType,
    OperationDefinitionNode,
    get_named_type,
    parse,
)

from slotlock.domain.slots.listing import ALL_FACTS, SlotSelection
from slotlock.graphql.core.node import names_below
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.facts import FACTS_OF_FIELDS, select_parts
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Four
from tests.support.domain.selections import select

MEMBER_COUNT = TEAM_SIZE = 3
# The fields of other types that are selected of a slot's fields.
INNER_FIELDS = {
    "Meeting": "{ startTime endTime }",
    "GroupLimit": "{ group limit }",
    "Booking": "{ id status createdAt onBehalf user { id } madeBy { id } slot { id title } }",
    "WaitlistEntry": "{ id since position slot { id title } }",
    "BookingEligibility": "{ mayBook refusal { __typename code message } }",
    "Campaign": "{ id }",
    "FamilyPlace": "{ user { id } booking { id slot { title } } waitlistEntry { id } "
    "eligibility { mayBook refusal { code message } } }",
    "Resource": "{ id name kind }",
    "SlotSeries": "{ id }",
    "User": "{ id }",
}
ALREADY_BOOKED = """... on AlreadyBooked {
  code booking { id history { action by { id } } madeBy { id } }
  slot { bookedBy { id } myBooking { id } }
}"""
LIMIT_REACHED = """... on LimitReached {
  code otherBookingId slot { bookedBy { id } myBooking { id } }
}"""
BOOK_ONE = f"""mutation($input: BookSlotInput!) {{
  bookSlot(input: $input) {{ {ALREADY_BOOKED} {LIMIT_REACHED} }}
}}"""
BOOK_SEVERAL = f"""mutation($input: BookSlotsInput!) {{
  bookSlots(input: $input) {{
    ... on ClaimsRefused {{ refusals {{ refusal {{ {ALREADY_BOOKED} {LIMIT_REACHED} }} }} }}
  }}
}}"""


def selection_of(text: str) -> SlotSelection:
    """Return the parts that the first field of an operation selects."""
    document = parse(text)
    operation = document.definitions[0]
    assert isinstance(operation, OperationDefinitionNode)
    field = operation.selection_set.selections[0]
    assert isinstance(field, FieldNode)
    fragments = {
        node.name.value: node
        for node in document.definitions
        if isinstance(node, FragmentDefinitionNode)
    }
    return select_parts(names_below([field], fragments))


@pytest.mark.parametrize(
    ("text", "parts", "facts"),
    [
        ("{ slots { nodes { id title version } } }", [], {"title", "version"}),
        ("{ slots { nodes { left: remaining } } }", ["remaining"], set()),
        (
            "{ slot(id: 1) { isBooked } other: slot(id: 2) { bookedBy { id } } }",
            ["remaining"],
            set(),
        ),
        ("{ slot(id: 1) { bookedBy { id } } }", ["booked_by"], {"capacity"}),
        ("{ slot(id: 1) { meetingUrl } }", ["my_booking"], {"meeting_url"}),
        ("{ node(id: 1) { ... on Slot { waitlistLength } } }", ["waitlist_length"], set()),
        (
            "{ myBookings { nodes { slot { ...F } } } } "
            "fragment F on Slot { myWaitlistEntry { slot { ...G } } } "
            "fragment G on Slot { myBooking { id } location }",
            ["my_booking", "my_waitlist_entry"],
            {"location"},
        ),
        (
            "query($no: Boolean!) { slots { nodes { remaining @include(if: $no) } } }",
            ["remaining"],
            set(),
        ),
        (
            "{ slots { edges { node { timeZone seriesId campaign { id } meetings { id } } } } }",
            [],
            {"time_zone", "series_id", "terms", "meetings", "start", "end"},
        ),
    ],
)
def test_the_parts_are_those_that_are_selected_below_the_field(
    text: str, parts: list[str], facts: set[str]
) -> None:
    assert selection_of(text) == replace(select(*parts), facts=frozenset(facts))


def test_every_stored_fact_that_the_schema_shows_is_selected_by_its_field() -> None:
    shown = frozenset[str]().union(*FACTS_OF_FIELDS.values())
    assert ALL_FACTS - shown == {"revision", "revised_at"}
    # Of a booking, the QR code names the slot, and the attendance the meetings.
    assert {
        "attendanceByMeeting",
        "cancelled",  # of a place of a family
        "checkInQr",
        *(name for name, _ in slot_fields()),
    } >= FACTS_OF_FIELDS.keys()


def slot_fields() -> Iterator[tuple[str, str]]:
    """Yield the name of each field of a slot, and the text that selects it."""
    slot_type = executable_schema.type_map["Slot"]
    assert isinstance(slot_type, GraphQLObjectType)
    for name, field in slot_type.fields.items():
        yield name, f"{name} {INNER_FIELDS.get(get_named_type(field.type).name, '')}"


async def read_fields(
    client: BookingClient, ids: Sequence[str], text: str, fields: str, operations: int = 1
) -> list[list[Json]]:
    """Return these fields of all slots, read by id and in a list, each in two ways.

    The reads are in one operation or in three: each has a selection of its own.
    """
    by_id = " ".join(f'a{n}: slot(id: "{each}") {{ ...F }}' for n, each in enumerate(ids))
    as_node = " ".join(f'b{n}: node(id: "{each}") {{ ...F }}' for n, each in enumerate(ids))
    listed = f'''slots(filter: {{ text: "{text}" }}, first: 9) {{
      nodes {{ ...F }} edges {{ node {{ ...F }} }}
    }}'''
    found: Json = {}
    for reads in ([by_id], [as_node], [listed]) if operations == 3 else ([by_id, as_node, listed],):
        document = f"{{ {' '.join(reads)} }} fragment F on Slot {{ id {fields} }}"
        result = await client.send(document)
        assert "errors" not in result, result
        found |= result["data"]
    return [
        [found[f"a{n}"] for n in range(len(ids))],
        [found[f"b{n}"] for n in range(len(ids))],
        found["slots"]["nodes"],
        [edge["node"] for edge in found["slots"]["edges"]],
    ]


async def test_each_field_has_the_same_value_alone_as_with_all_others(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada, ben), organizer = create_booking_clients(http, 2, app)
    limits, text = [{"group": "class:*", "limit": 2}], secrets.token_hex(8)
    campaign_id = await create_campaign(organizer)
    # Lists have them in this order.
    ids = [
        await organizer.add_slot(title=f"{text} a", capacity=1, waitlistCapacity=5),
        await organizer.add_slot(
            title=f"{text} b",
            capacity=3,
            location="Hall",
            groupLimits=limits,
            meetingUrl="https://meet.example/room",
        ),
        await organizer.add_slot(
            title=f"{text} c", campaignId=campaign_id, resource=text, choiceGroup=text
        ),
    ]
    for slot_id in ids:
        await ada.book_slot(slot_id)
    assert (await ben.join(ids[0]))["position"] == 1
    all_fields = " ".join(text for _, text in slot_fields())
    for client in (ada, ben, organizer):
        together, *others = await read_fields(client, ids, text, all_fields, operations=3)
        assert others == [together] * 3
        for name, field in slot_fields():
            alone = await read_fields(client, ids, text, field)
            assert alone == [[{"id": each["id"], name: each[name]} for each in together]] * 4


async def refusal_for(client: BookingClient, slot_id: str, user_id: str) -> Json:
    """Return the refusal of a booking for a user; check that `bookSlots` refuses it alike."""
    claim = {"slotId": slot_id, "userId": user_id}
    refusal: Json = await client.execute(BOOK_ONE, input=claim)
    (claimed,) = (await client.execute(BOOK_SEVERAL, input={"claims": [claim]}))["refusals"]
    assert claimed["refusal"] == refusal
    return refusal


async def test_a_teammate_does_not_see_the_history_of_other_bookings(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    slot_id, ben_id = await organizer.add_slot(), await ben.fetch_user_id()
    booking = (await ben.book_slot(slot_id))["booking"]
    refusal = await refusal_for(ada, slot_id, ben_id)
    assert refusal == {
        "code": "ALREADY_BOOKED",
        "booking": {"id": booking["id"], "history": [], "madeBy": None},
        "slot": {"bookedBy": None, "myBooking": None},
    }
    # The id of the booking does not reveal it either.
    assert await cleo.fetch_booking(booking["id"]) is None


@pytest.mark.parametrize("booker_name", ["teammate", "organizer"])
async def test_a_teammate_does_not_see_the_booker_of_a_booking_on_behalf(
    clients: Four, booker_name: str
) -> None:
    ada, ben, cleo, organizer = clients
    booker = cleo if booker_name == "teammate" else organizer
    slot_id, ben_id = await organizer.add_slot(), await ben.fetch_user_id()
    await booker.book_slot(slot_id, userId=ben_id)
    refusal = await refusal_for(ada, slot_id, ben_id)
    assert (refusal["booking"]["history"], refusal["booking"]["madeBy"]) == ([], None)


async def test_the_user_the_booker_and_organizers_see_the_history(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id = await organizer.add_slot()
    ben_id, ada_id = await ben.fetch_user_id(), await ada.fetch_user_id()
    await ada.book_slot(slot_id, userId=ben_id)
    for reader in (ada, ben, organizer):
        booking = (await refusal_for(reader, slot_id, ben_id))["booking"]
        assert booking["madeBy"] == {"id": ada_id}
        assert booking["history"] == [{"action": "BOOKED", "by": {"id": ada_id}}]


async def test_a_teammate_does_not_see_the_booking_in_the_choice_group(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    choice_group, ben_id = secrets.token_hex(8), await ben.fetch_user_id()
    bed, other = [await organizer.add_slot(choiceGroup=choice_group) for _ in range(2)]
    # The booker of the other booking does not see it either: they may have left the team since.
    booking = (await ada.book_slot(bed, userId=ben_id))["booking"]
    for teammate in (ada, cleo):
        refusal = await refusal_for(teammate, other, ben_id)
        assert refusal == {
            "code": "LIMIT_REACHED",
            "otherBookingId": None,
            "slot": {"bookedBy": None, "myBooking": None},
        }
    assert (await refusal_for(ben, other, ben_id))["otherBookingId"] == booking["id"]


async def test_a_history_of_several_changes_is_hidden_too(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    ben_id = await ben.fetch_user_id()
    hold = await ben.hold(slot_id)
    await organizer.confirm(hold["id"])
    moved = (await organizer.move(hold["id"], other_id))["booking"]
    refusal = (await refusal_for(ada, other_id, ben_id))["booking"]
    assert refusal == {"id": moved["id"], "history": [], "madeBy": None}
