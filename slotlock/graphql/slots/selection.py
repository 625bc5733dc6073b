"""The parts of slots that an operation selects."""

from collections.abc import Mapping, Sequence

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    SelectionNode,
)

from slotlock.domain.slots.listing import SlotSelection
from slotlock.graphql.context import Info


def slot_selection(info: Info) -> SlotSelection:
    """Return the parts of slots that are selected anywhere below the resolved field."""
    return select_parts(info._raw_info.field_nodes, info._raw_info.fragments)


def select_parts(
    fields: Sequence[FieldNode], fragments: Mapping[str, FragmentDefinitionNode]
) -> SlotSelection:
    """Return the parts of slots that are selected anywhere below these fields.

    That may be more than is needed: a name counts at any depth, and also where `@skip` or
    `@include` leaves it out.
    """
    names = _selected_names(fields, fragments)
    return SlotSelection(
        remaining="remaining" in names or "isBooked" in names,
        my_booking="myBooking" in names,
        my_waitlist_entry="myWaitlistEntry" in names,
        waitlist_length="waitlistLength" in names,
        booked_by="bookedBy" in names,
    )


def _selected_names(
    fields: Sequence[FieldNode], fragments: Mapping[str, FragmentDefinitionNode]
) -> set[str]:
    names: set[str] = set()
    spread: set[str] = set()
    pending: list[SelectionNode] = list(fields)
    while pending:
        node = pending.pop()
        if isinstance(node, FieldNode):
            names.add(node.name.value)
            inner = node.selection_set
        elif isinstance(node, InlineFragmentNode):
            inner = node.selection_set
        elif isinstance(node, FragmentSpreadNode) and node.name.value not in spread:
            spread.add(node.name.value)
            inner = fragments[node.name.value].selection_set
        else:
            continue
        if inner is not None:
            pending += inner.selections
    return names
