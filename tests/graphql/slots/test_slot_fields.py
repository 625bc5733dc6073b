"""The table of a slot's attributes is complete, and says what clients can change."""

import dataclasses

from strawberry.utils.str_converters import to_camel_case

from slotlock.domain.booking.slot import Slot
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.fields import EDITABLE_FIELDS, SLOT_FIELDS
from slotlock.graphql.slots.inputs import UpdateSlotInput
from slotlock.infrastructure.mongo.slots.documents import to_document, to_slot
from tests.support.domain.builders import build_slot

# What a slot document contains under names of its own, or what is not stored at all.
OTHER_ATTRIBUTES = {"id", "booked_count", "bookings", "waitlist", "waitlist_length"}
NOT_STORED = {"loaded_waitlist", "group_counts", "user_contexts", "next_deadline", "change"}


def names_of(of: type) -> set[str]:
    """Return the names of a dataclass's fields."""
    return {field.name for field in dataclasses.fields(of)}


def test_every_attribute_of_a_slot_is_in_the_table_once() -> None:
    stored = [field.name for field in SLOT_FIELDS if field.stored_name is not None]
    assert sorted(stored) == sorted(names_of(Slot) - OTHER_ATTRIBUTES - NOT_STORED)


def test_clients_can_change_exactly_the_editable_fields() -> None:
    inputs = {to_camel_case(name) for name in names_of(UpdateSlotInput)} - {"slotId", "scope"}
    assert {field.api_name for field in EDITABLE_FIELDS} == inputs
    assert {field.name for field in EDITABLE_FIELDS} <= names_of(SlotDraft)


def test_a_document_has_the_names_of_the_table() -> None:
    slot = build_slot(id="5" * 24)
    document = to_document(slot)
    names = {field.stored_name for field in SLOT_FIELDS}
    other_names = {"_id", "remaining", "searchWords", "bookings", "waitlist"}
    assert document.keys() - names == other_names
    assert to_slot(document) == slot
