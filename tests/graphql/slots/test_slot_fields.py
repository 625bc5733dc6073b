"""Every field of a slot is entered, stored, changed and shown; descriptions as an example."""

import dataclasses
from dataclasses import MISSING
from datetime import timedelta
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest
from strawberry import ID
from strawberry.utils.str_converters import to_camel_case

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SLOT_FACTS, SLOT_FIELDS
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.facts import Attribute, Link, Names, Number
from slotlock.domain.slots.editing import create
from slotlock.domain.slots.slot_patch import SlotDraft, SlotPatch
from slotlock.domain.users.user import Role
from slotlock.graphql.core.errors import GraphQLRequestError
from slotlock.graphql.core.scalars import TimeZone
from slotlock.graphql.core.shared_types import GroupLimitInput
from slotlock.graphql.slots import slot_types
from slotlock.graphql.slots.inputs import (
    CHANGEABLE_FACTS,
    CreateSlotInput,
    TimetableInput,
    UpdateSlotInput,
)
from slotlock.infrastructure.mongo.slots.slot_documents import to_document, to_slot_state
from slotlock.services.idempotency_key import fields_of_draft
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import campaign_fields
from tests.support.clients.client import GraphQLTestClient, Json, slot_input
from tests.support.clients.series import MONDAY_TIMES
from tests.support.domain.builders import NOW, build_caller, build_patch, build_slot

MARKDOWN = "# Yoga\r\n\n* bring a <b>mat</b> \u00e9 e\u0301 \t\n<script>alert(1)</script>  \n"
CREATE = """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
  ... on Slot { id description version } ... on InvalidInput { fields { field message } }
} }"""
UPDATE = """mutation($input: UpdateSlotInput!) { updateSlot(input: $input) {
  ... on Slot { description version } ... on InvalidInput { fields { field message } }
} }"""
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { slots { description } }
} }"""
BOOK = """mutation($slot: ID!) { bookSlot(input: {slotId: $slot}) {
  ... on Booked { slot { description } }
} }"""
SLOT = "query($slot: ID!) { slot(id: $slot) { description } }"
AUDIT_LOG = """query($slot: ID!) { auditLog(filter: {slotId: $slot}) {
  nodes { edits { field before after } }
} }"""
CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) { createCampaign(input: $input) {
  ... on Campaign { id description version } ... on InvalidInput { fields { field message } }
} }"""
UPDATE_CAMPAIGN = """mutation($input: UpdateCampaignInput!) { updateCampaign(input: $input) {
  ... on Campaign { description version }
} }"""


def names_of(of: type) -> set[str]:
    """Return the names of a dataclass's fields."""
    return {field.name for field in dataclasses.fields(of)}


def another_value(fact: Attribute) -> object:
    """Return a valid value of a fact that is not its default."""
    if isinstance(fact.check, Number):
        return fact.check.minimum + 1
    if isinstance(fact.check, Link):
        return "https://meet.example.org/room"
    if isinstance(fact.check, Names):
        return ("5a", "6*")
    value_type = next(iter(get_args(fact.type)), fact.type)
    if issubclass(value_type, Enum):
        return next(each for each in reversed(value_type) if each is not fact.default)
    return "Europe/Berlin"


CHANGE_INPUTS = sorted(names_of(UpdateSlotInput) - {"slot_id", "scope", "allow_past"})
VALUES: dict[str, Any] = {fact.name: another_value(fact) for fact in SLOT_FACTS}
NULLABLE = {"description", "resource", "timetable"}
NULLABLE |= {fact.name for fact in CHANGEABLE_FACTS if fact.is_nullable}
CHANGED_VALUES = {fact.name: VALUES[fact.name] for fact in CHANGEABLE_FACTS}


def test_every_fact_that_is_entered_is_stored_loaded_and_shown() -> None:
    entered = CreateSlotInput(start_time=NOW, end_time=NOW + timedelta(hours=1), **VALUES)
    draft = entered.to_draft()
    assert isinstance(draft, SlotDraft)
    created = create(SlotId("5" * 24), draft, NOW)
    assert isinstance(created, SlotState)
    organizer = build_caller("olga", Role.ORGANIZER)
    shown = slot_types.Slot(to_slot_state(to_document(created)), organizer)
    assert {name: getattr(shown, name) for name in VALUES} == VALUES


def test_a_request_without_optional_facts_has_the_same_hash_in_other_versions() -> None:
    # GraphQL gives an empty list for a default.
    plain = CreateSlotInput(title="Yoga", start_time=NOW, only_for_groups=[])  # type: ignore[arg-type]
    draft = plain.to_draft()
    assert isinstance(draft, SlotDraft)
    assert "only_for_groups" not in fields_of_draft(draft)["settings"]  # type: ignore[operator]


def test_a_fact_has_the_same_type_and_default_wherever_it_is_entered() -> None:
    created, updated = get_type_hints(CreateSlotInput), get_type_hints(UpdateSlotInput)
    optional = {fact.name: fact.default for fact in SLOT_FACTS if fact.default is not MISSING}
    defaults = {each.name: each.default for each in dataclasses.fields(CreateSlotInput)}
    assert defaults | optional == defaults
    for fact in SLOT_FACTS:
        name, shown_as = fact.name, TimeZone if fact.name == "time_zone" else fact.type
        assert created[name] == shown_as
        if fact in CHANGEABLE_FACTS:
            assert updated[name] == shown_as | None


def test_clients_can_change_exactly_the_editable_fields() -> None:
    # A timetable is stored as meetings, so it is no attribute of a slot.
    api_names = {field.name: field.api_name for field in SLOT_FIELDS} | {"timetable": "timetable"}
    api_names |= {"description": "description", "several_resources": "resourceIds"}
    inputs = {to_camel_case(name) for name in CHANGE_INPUTS}
    fields = names_of(SlotPatch) - {"settings", "given", "allow_past"}
    facts = {fact.name for fact in SLOT_FACTS} - {"choice_group"}
    assert {api_names[name] for name in fields | facts} == inputs
    assert names_of(SlotPatch) - {"given"} <= names_of(SlotDraft)


def test_each_input_changes_its_own_field() -> None:
    update = UpdateSlotInput(
        slot_id=ID("any"),
        start_time=NOW,
        end_time=NOW + timedelta(hours=1),
        description="Bring a *mat*.",
        group_limits=[GroupLimitInput(group="5a", limit=6)],
        resource="Room",
        timetable=TimetableInput(first=NOW.date(), last=NOW.date()),
        **CHANGED_VALUES,
    )
    assert update.to_changes() == build_patch(
        start=NOW,
        end=NOW + timedelta(hours=1),
        description="Bring a *mat*.",
        group_limits=(GroupLimit("5a", 6),),
        resource="Room",
        timetable=Timetable(NOW.date(), NOW.date(), (), (), ()),
        **CHANGED_VALUES,
    )


@pytest.mark.parametrize("name", CHANGE_INPUTS)
def test_null_removes_an_optional_field_and_is_an_error_for_any_other(name: str) -> None:
    update = UpdateSlotInput(slot_id=ID("any"), **{name: None})  # type: ignore[arg-type]
    if name in NULLABLE:
        assert update.to_changes() == build_patch(**{name: None})
    else:
        with pytest.raises(GraphQLRequestError, match="cannot be null") as error:
            update.to_changes()
        assert error.value.field == to_camel_case(name)


def test_a_document_has_the_names_of_the_attributes() -> None:
    slot = build_slot(id="5" * 24)
    document = to_document(slot)
    names = {field.stored_name for field in SLOT_FIELDS}
    state = {"version", "changedAt", "remaining", "bookings", "waitlist"}
    for_lists = {"searchWords", "titleKey", "spans"}
    other_names = state | for_lists | {"_id", "schemaVersion"}
    assert document.keys() - names == other_names
    assert to_slot_state(document) == slot


async def create_slot(organizer: GraphQLTestClient, **fields: object) -> Json:
    created: Json = await organizer.execute(CREATE, input={**slot_input(), **fields})
    return created


async def test_a_description_is_stored_exactly_as_it_was_sent(organizer: BookingClient) -> None:
    created = await create_slot(organizer, description=MARKDOWN)
    assert created["description"] == MARKDOWN
    assert (await organizer.execute(SLOT, slot=created["id"]))["description"] == MARKDOWN
    booked = await organizer.execute(BOOK, slot=created["id"])
    assert booked["slot"]["description"] == MARKDOWN
    assert (await create_slot(organizer))["description"] is None


async def test_an_edit_changes_removes_or_leaves_the_description(organizer: BookingClient) -> None:
    slot_id = (await create_slot(organizer, description="old"))["id"]
    steps: list[tuple[Json, str | None]] = [
        ({"title": "Yoga"}, "old"),
        ({"description": "new"}, "new"),
        ({"description": None}, None),
        ({"description": ""}, ""),
    ]
    for changes, expected in steps:
        edited = await organizer.execute(UPDATE, input={"slotId": slot_id, **changes})
        assert edited["description"] == expected


async def test_each_slot_of_a_series_has_the_description(organizer: BookingClient) -> None:
    slot = {"title": "Yoga", **MONDAY_TIMES, "description": MARKDOWN}
    fields = {"slot": slot, "rrule": "FREQ=WEEKLY;COUNT=2"}
    created = await organizer.execute(CREATE_SERIES, input=fields)
    assert created["slots"] == [{"description": MARKDOWN}] * 2


@pytest.mark.parametrize("text", ["x" * 10_001, "a\x00b", "\x1b[0m"])
async def test_a_description_that_is_too_long_or_has_control_characters_is_refused(
    organizer: BookingClient, text: str
) -> None:
    refused = await create_slot(organizer, description=text)
    assert [problem["field"] for problem in refused["fields"]] == ["description"]
    refused = await organizer.execute(
        CREATE_CAMPAIGN, input={**campaign_fields(), "description": text}
    )
    assert [problem["field"] for problem in refused["fields"]] == ["description"]
    longest = await create_slot(organizer, description="x" * 10_000)
    assert len(longest["description"]) == 10_000


async def test_the_log_has_the_beginning_of_a_new_description(organizer: BookingClient) -> None:
    slot_id = (await create_slot(organizer))["id"]
    await organizer.execute(UPDATE, input={"slotId": slot_id, "description": "x" * 300})
    entries = (await organizer.execute(AUDIT_LOG, slot=slot_id))["nodes"]
    assert {"field": "description", "before": None, "after": "x" * 200} in entries[0]["edits"]


async def test_a_campaign_has_a_description_that_an_edit_changes_or_removes(
    organizer: BookingClient,
) -> None:
    created = await organizer.execute(
        CREATE_CAMPAIGN, input={**campaign_fields(), "description": MARKDOWN}
    )
    assert created["description"] == MARKDOWN
    steps: list[tuple[Json, str | None]] = [
        ({"name": "Autumn"}, MARKDOWN),
        ({"description": "new"}, "new"),
        ({"description": None}, None),
    ]
    for version, (changes, expected) in enumerate(steps, start=2):
        edited = await organizer.execute(
            UPDATE_CAMPAIGN, input={"campaignId": created["id"], **changes}
        )
        assert edited == {"description": expected, "version": version}
