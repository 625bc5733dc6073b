"""The selection of an operation decides what is read, and never what a client sees."""

import secrets
from collections.abc import Iterator

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

from slotlock.domain.slots.listing import SlotSelection
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.selection import select_parts
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json
from tests.support.domain.selections import NOTHING, select

# The fields of other types that are selected of a slot's fields.
INNER_FIELDS = {
    "Meeting": "{ startTime endTime }",
    "GroupLimit": "{ group limit }",
    "Booking": "{ id status createdAt onBehalf user { id } madeBy { id } slot { id title } }",
    "WaitlistEntry": "{ id since position slot { id title } }",
    "Campaign": "{ id }",
    "User": "{ id }",
}


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
    return select_parts([field], fragments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ slots { nodes { id title version } } }", NOTHING),
        ("{ slots { nodes { left: remaining } } }", select("remaining")),
        (
            "{ slot(id: 1) { isBooked } other: slot(id: 2) { bookedBy { id } } }",
            select("remaining"),
        ),
        ("{ slot(id: 1) { bookedBy { id } } }", select("booked_by")),
        ("{ node(id: 1) { ... on Slot { waitlistLength } } }", select("waitlist_length")),
        (
            "{ myBookings { nodes { slot { ...F } } } } "
            "fragment F on Slot { myWaitlistEntry { slot { ...G } } } "
            "fragment G on Slot { myBooking { id } }",
            select("my_booking", "my_waitlist_entry"),
        ),
        (
            "query($no: Boolean!) { slots { nodes { remaining @include(if: $no) } } }",
            select("remaining"),
        ),
    ],
)
def test_the_parts_are_those_that_are_selected_below_the_field(
    text: str, expected: SlotSelection
) -> None:
    assert selection_of(text) == expected


def slot_fields() -> Iterator[tuple[str, str]]:
    """Yield the name of each field of a slot, and the text that selects it."""
    slot_type = executable_schema.type_map["Slot"]
    assert isinstance(slot_type, GraphQLObjectType)
    for name, field in slot_type.fields.items():
        yield name, f"{name} {INNER_FIELDS.get(get_named_type(field.type).name, '')}"


async def read_fields(client: BookingClient, slot_id: str, title: str, fields: str) -> list[Json]:
    """Return these fields of a slot, read by id and in a list, each in two ways."""
    fields = f"{{ id {fields} }}"
    by_id = f"query($id: ID!) {{ slot(id: $id) {fields} }}"
    as_node = f"query($id: ID!) {{ node(id: $id) {{ ... on Slot {fields} }} }}"
    listed = f"""query($title: String!) {{
      slots(filter: {{ text: $title }}, first: 1) {{ nodes {fields} edges {{ node {fields} }} }}
    }}"""
    connection = await client.execute(listed, title=title)
    return [
        await client.execute(by_id, id=slot_id),
        await client.execute(as_node, id=slot_id),
        *connection["nodes"],
        *(edge["node"] for edge in connection["edges"]),
    ]


async def test_each_field_has_the_same_value_alone_as_with_all_others(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada, ben), organizer = create_booking_clients(http, 2, app)
    limits = [{"group": "class:*", "limit": 2}]
    single, several = secrets.token_hex(8), secrets.token_hex(8)
    titles = {
        await organizer.add_slot(title=single, capacity=1, waitlistCapacity=5): single,
        await organizer.add_slot(
            title=several, capacity=3, location="Hall", groupLimits=limits
        ): several,
    }
    for slot_id in titles:
        await ada.book_slot(slot_id)
    assert (await ben.join(next(iter(titles))))["position"] == 1
    all_fields = " ".join(text for _, text in slot_fields())
    for client in (ada, ben, organizer):
        for slot_id, title in titles.items():
            together, *others = await read_fields(client, slot_id, title, all_fields)
            assert others == [together] * 3
            for name, text in slot_fields():
                alone = await read_fields(client, slot_id, title, text)
                assert alone == [{"id": slot_id, name: together[name]}] * 4
