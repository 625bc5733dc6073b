"""The table of a slot's attributes is complete, and says what clients can change."""

import dataclasses
from datetime import timedelta

import pytest
from strawberry import ID
from strawberry.utils.str_converters import to_camel_case

from slotlock.domain.booking.slot import Slot, SlotKind
from slotlock.domain.campaigns.terms import GroupLimit, SlotAdmission
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.fields import SLOT_FIELDS
from slotlock.graphql.core.errors import GraphQLRequestError
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.values import GroupLimitInput
from slotlock.graphql.slots.inputs.slots import UpdateSlotInput
from slotlock.graphql.slots.inputs.timetables import TimetableInput
from slotlock.infrastructure.mongo.slots.documents import to_document, to_slot_state
from tests.support.domain.builders import NOW, build_slot


def names_of(of: type) -> set[str]:
    """Return the names of a dataclass's fields."""
    return {field.name for field in dataclasses.fields(of)}


CHANGE_INPUTS = sorted(names_of(UpdateSlotInput) - {"slot_id", "scope", "allow_past"})


def test_every_attribute_of_a_slot_is_in_the_table_once() -> None:
    names = [field.name for field in SLOT_FIELDS]
    # A description is read on its own.
    assert sorted(names) == sorted(names_of(Slot) - {"id", "description"})


def test_clients_can_change_exactly_the_editable_fields() -> None:
    # A timetable is stored as meetings, so it is no attribute of a slot.
    api_names = {field.name: field.api_name for field in SLOT_FIELDS} | {"timetable": "timetable"}
    api_names |= {"description": "description", "several_resources": "resourceIds"}
    inputs = {to_camel_case(name) for name in CHANGE_INPUTS}
    fields = names_of(SlotChanges) - {"allow_past"}
    assert {api_names[name] for name in fields} == inputs
    assert names_of(SlotChanges) <= names_of(SlotDraft)


def test_each_input_changes_its_own_field() -> None:
    update = UpdateSlotInput(
        slot_id=ID("any"),
        title="Yoga",
        start_time=NOW,
        end_time=NOW + timedelta(hours=1),
        capacity=1,
        time_zone=TimeZone("Europe/Berlin"),
        location="Hall",
        description="Bring a *mat*.",
        kind=SlotKind.COURSE,
        hold_minutes=2,
        hold_cooldown_minutes=7,
        cancel_cutoff_minutes=3,
        waitlist_capacity=4,
        waitlist_offer_minutes=5,
        group_limits=[GroupLimitInput(group="5a", limit=6)],
        resource="Room",
        admission=SlotAdmission.QUEUE_ONLY,
        timetable=TimetableInput(first=NOW.date(), last=NOW.date()),
    )
    assert update.to_changes() == SlotChanges(
        title="Yoga",
        start=NOW,
        end=NOW + timedelta(hours=1),
        capacity=1,
        time_zone="Europe/Berlin",
        location="Hall",
        kind=SlotKind.COURSE,
        hold_minutes=2,
        hold_cooldown_minutes=7,
        cancel_cutoff_minutes=3,
        waitlist_capacity=4,
        waitlist_offer_minutes=5,
        group_limits=(GroupLimit("5a", 6),),
        description="Bring a *mat*.",
        resource="Room",
        admission=SlotAdmission.QUEUE_ONLY,
        timetable=Timetable(NOW.date(), NOW.date(), (), (), ()),
    )


@pytest.mark.parametrize("name", CHANGE_INPUTS)
def test_null_removes_an_optional_field_and_is_an_error_for_any_other(name: str) -> None:
    update = UpdateSlotInput(slot_id=ID("any"), **{name: None})  # type: ignore[arg-type]
    if name in {"description", "location", "resource", "timetable", "waitlist_offer_minutes"}:
        assert update.to_changes() == SlotChanges(**{name: None})  # type: ignore[arg-type]
    else:
        with pytest.raises(GraphQLRequestError, match="cannot be null") as error:
            update.to_changes()
        assert error.value.field == to_camel_case(name)


def test_a_document_has_the_names_of_the_table() -> None:
    slot = build_slot(id="5" * 24)
    document = to_document(slot)
    names = {field.stored_name for field in SLOT_FIELDS}
    state = {"version", "changedAt", "remaining", "bookings", "waitlist"}
    for_lists = {"searchWords", "titleKey", "spans", "listedRevision", "foldedRevision"}
    other_names = state | for_lists | {"_id", "schemaVersion"}
    assert document.keys() - names == other_names
    assert to_slot_state(document) == slot
