"""Every bad value is one kind of error: `BAD_USER_INPUT` with the field, wherever it was sent."""

import dataclasses
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, cast

import pytest
from graphql import located_error
from strawberry import ID

from slotlock.domain.campaigns.campaign import create_campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, to_sort_name
from slotlock.graphql.campaigns.campaign_mutations import CreateCampaignInput, NoShowLimitInput
from slotlock.graphql.context import Context
from slotlock.graphql.core.arguments import require_valid_key, to_required_change, to_wait_seconds
from slotlock.graphql.core.connections import page_start
from slotlock.graphql.core.cursors import BY_NAME, ListCursors
from slotlock.graphql.core.errors import GraphQLRequestError, format_error
from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.reports.audit_queries import AuditLogFilter
from slotlock.graphql.reports.campaign_report_queries import require_campaign_id
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.inputs import CreateSlotInput, UpdateSlotInput
from slotlock.graphql.users.user_queries import require_valid_group
from tests.support.domain.builders import NOW

ANY_LIST = ListCursors("any list", BY_NAME, str)
CREATE = "mutation%s { createSlot(input: %s) { __typename } }"
SLOTS = "query%s { slots(filter: %s) { nodes { id } } }"
FIRST = "query%s { slots(first: %s) { nodes { id } } }"
CREATE_CAMPAIGN = "mutation%s { createCampaign(input: %s) { __typename } }"
BOOK = "mutation%s { bookSlot(input: %s) { __typename } }"
BOOK_SEVERAL = "mutation%s { bookSlots(input: %s) { __typename } }"
SERIES = "mutation%s { createSlotSeries(input: %s) { __typename } }"
IN_FRAGMENT = "query%s { ...Found } fragment Found on Query { slots(filter: %s) { nodes { id } } }"
INPUT_TYPES = {
    CREATE: "CreateSlotInput!",
    SLOTS: "SlotsFilter",
    FIRST: "Int!",
    CREATE_CAMPAIGN: "CreateCampaignInput!",
    BOOK: "BookSlotInput!",
    BOOK_SEVERAL: "BookSlotsInput!",
    SERIES: "CreateSlotSeriesInput!",
    IN_FRAGMENT: "SlotsFilter",
}


class Literal(str):
    """A value that is no string in a document, such as an enum value."""

    __slots__ = ()


class BadValue(NamedTuple):
    """A document, the argument in the place of its second `%s`, and the error of its value."""

    document: str
    argument: Any
    field: str
    message: str


MESSAGE_OF_TIME = "Please use a time with an offset, like 2030-01-31T14:00:00+01:00."
MESSAGE_OF_ZONE = "Please use an IANA time zone, such as Europe/Berlin."
CAMPAIGN = {"name": "A", "opensAt": "2030-01-31T14:00:00Z", "closesAt": "2030-02-28T14:00:00Z"}
COURSE = {"first": "2030-01-31", "last": "2030-02-28"}
BAD_VALUES = {
    "time": BadValue(SLOTS, {"startsFrom": "tomorrow"}, "startsFrom", MESSAGE_OF_TIME),
    "time that does not exist": BadValue(
        CREATE,
        {"title": "A", "startTime": "2030-02-29T14:00:00Z"},
        "startTime",
        "This time does not exist.",
    ),
    "end of a day": BadValue(
        CREATE,
        {"title": "A", "endTime": "2030-01-31T24:00:00+01:00"},
        "endTime",
        "A day has no 24:00. Please use 00:00 of the next day.",
    ),
    "zone": BadValue(CREATE, {"title": "A", "timeZone": "Mars"}, "timeZone", MESSAGE_OF_ZONE),
    "date": BadValue(
        CREATE,
        {"title": "A", "timetable": {**COURSE, "first": "2030-02-30"}},
        "first",
        "This date does not exist.",
    ),
    "number": BadValue(
        CREATE,
        {"title": "A", "capacity": "ten"},
        "capacity",
        "Int cannot represent non-integer value.",
    ),
    "too large number": BadValue(
        FIRST, 10**12, "first", "Int cannot represent non 32-bit signed integer value."
    ),
    "text": BadValue(CREATE, {"title": 5}, "title", "String cannot represent a non string value."),
    "enum value": BadValue(
        CREATE,
        {"title": "A", "kind": Literal("PARTY")},
        "kind",
        "Value 'PARTY' does not exist in 'SlotKind' enum.",
    ),
    "id": BadValue(BOOK, {"slotId": True}, "slotId", "ID cannot represent"),
    "null": BadValue(
        BOOK, {"slotId": None}, "slotId", "Expected value of non-null type 'ID!' not to be None."
    ),
    "missing field": BadValue(
        BOOK,
        {"hold": True},
        "slotId",
        "Expected value of type 'BookSlotInput' to include required field 'slotId'.",
    ),
    "unknown field": BadValue(
        BOOK,
        {"slotId": "x", "seat": 7},
        "seat",
        "Expected value of type 'BookSlotInput' not to include unknown field 'seat'.",
    ),
    "no object": BadValue(
        BOOK, 7, "input", "Expected value of type 'BookSlotInput' to be an object."
    ),
    "number of a nested input": BadValue(
        CREATE_CAMPAIGN,
        {**CAMPAIGN, "noShowLimit": {"count": "two", "days": 1}},
        "count",
        "Int cannot represent non-integer value.",
    ),
    "item of a list": BadValue(
        BOOK_SEVERAL,
        {"claims": [{"slotId": "x"}, {"slotId": 1.5}]},
        "claims",
        "Item 2: ID cannot represent",
    ),
    "missing field of an item": BadValue(
        BOOK_SEVERAL,
        {"claims": [{"slotId": "x"}, {}]},
        "claims",
        "Item 2: Expected value of type 'ClaimInput' to include required field 'slotId'.",
    ),
    "field of an input in an input": BadValue(
        SERIES,
        {"slot": {"title": "A", "timeZone": "Mars"}, "rrule": "FREQ=DAILY"},
        "timeZone",
        MESSAGE_OF_ZONE,
    ),
    "variable of a fragment": BadValue(
        IN_FRAGMENT, {"startsBefore": "tomorrow"}, "startsBefore", MESSAGE_OF_TIME
    ),
}


async def request_errors(
    text: str, variables: dict[str, Any] | None = None, *, is_compiled: bool = True
) -> list[dict[str, Any]]:
    """Return the errors of a request that no resolver sees, without locations."""
    cache = DocumentCache(executable_schema, introspection=False)
    try:
        operation = cache.resolve_operation(text, None)
    except DocumentError as rejected:
        errors = rejected.errors
    else:
        assert operation.compiled is not None
        if not is_compiled:
            operation = dataclasses.replace(operation, compiled=None)
        response = await execute_operation(operation, variables, cast("Context", None))
        errors = response.body["errors"]
    for error in errors:
        assert error.pop("locations")
    return errors


def to_literal(value: Any) -> str:
    """Write a value as it stands in a document."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {to_literal(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_literal, value)) + "]"
    return str(value) if isinstance(value, Literal) else json.dumps(value)


def assert_about(errors: list[dict[str, Any]], field: str, message: str) -> None:
    """Check that the only error is about a field, and that its message begins like this."""
    (error,) = errors
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": field}
    assert error["message"].startswith(message)
    assert error.keys() == {"message", "extensions"}


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "uncompiled"])
@pytest.mark.parametrize("kind", BAD_VALUES)
async def test_a_bad_value_in_a_variable_names_its_field(kind: str, is_compiled: bool) -> None:
    bad = BAD_VALUES[kind]
    text = bad.document % (f"($sent: {INPUT_TYPES[bad.document]})", "$sent")
    errors = await request_errors(text, {"sent": bad.argument}, is_compiled=is_compiled)
    assert_about(errors, bad.field, bad.message)


@pytest.mark.parametrize("kind", BAD_VALUES)
async def test_the_same_value_in_the_document_is_the_same_error(kind: str) -> None:
    bad = BAD_VALUES[kind]
    errors = await request_errors(bad.document % ("", to_literal(bad.argument)))
    assert_about(errors, bad.field, bad.message)


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "uncompiled"])
async def test_a_variable_inside_of_an_input_has_the_name_of_its_place(is_compiled: bool) -> None:
    text = CREATE % ("($z: TimeZone!)", '{title: "A", timeZone: $z}')
    errors = await request_errors(text, {"z": "Mars"}, is_compiled=is_compiled)
    assert_about(errors, "timeZone", MESSAGE_OF_ZONE)
    text = BOOK_SEVERAL % ("($id: ID!)", '{claims: [{slotId: "x"}, {slotId: $id}]}')
    errors = await request_errors(text, {"id": []}, is_compiled=is_compiled)
    message = "Item 2: ID cannot represent"
    assert_about(errors, "claims", message)


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "uncompiled"])
async def test_a_missing_value_and_a_missing_argument_name_their_field(is_compiled: bool) -> None:
    text = BOOK % ("($when: ID!)", "{slotId: $when}")
    (error,) = await request_errors(text, {}, is_compiled=is_compiled)
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "slotId"}
    (error,) = await request_errors("mutation { bookSlot { __typename } }")
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "input"}


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "uncompiled"])
async def test_null_for_an_argument_with_a_default_names_the_argument(is_compiled: bool) -> None:
    text = FIRST % ("($count: Int = 3)", "$count")
    (error,) = await request_errors(text, {"count": None}, is_compiled=is_compiled)
    assert error["path"] == ["slots"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": "first"}


async def test_a_bad_default_of_a_variable_names_its_field() -> None:
    errors = await request_errors(SLOTS % ('($f: SlotsFilter = {startsFrom: "soon"})', "$f"))
    assert_about(errors, "startsFrom", "Please use a time with an offset")


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "uncompiled"])
async def test_each_bad_value_of_a_variable_is_an_error_of_its_own(is_compiled: bool) -> None:
    sent = {"title": 5, "startTime": "soon", "timeZone": "Mars"}
    text = CREATE % ("($sent: CreateSlotInput!)", "$sent")
    errors = await request_errors(text, {"sent": sent}, is_compiled=is_compiled)
    fields = [error["extensions"]["field"] for error in errors]
    assert fields == ["title", "startTime", "timeZone"]
    inline = await request_errors(CREATE % ("", to_literal(sent)))
    assert [error["extensions"]["field"] for error in inline] == fields


@pytest.mark.parametrize(
    "text",
    [
        "{ nothing }",
        "{ slots(frist: 1) { nodes { id } } }",
        "query($id: ID) { slot(id: $id) { id } }",
        "{ slot(id: $id) { id } }",
    ],
)
async def test_an_error_of_the_document_itself_has_no_field(text: str) -> None:
    (error, *_) = await request_errors(text)
    assert error["extensions"] == {"code": "GRAPHQL_VALIDATION_FAILED"}


@pytest.mark.parametrize(
    ("convert", "field"),
    [
        (lambda: to_wait_seconds(-1), "waitMs"),
        (lambda: require_valid_key(""), "idempotencyKey"),
        (lambda: page_start(ANY_LIST, 0, None), "first"),
        (lambda: page_start(ANY_LIST, 1, "no cursor"), "after"),
        (lambda: require_valid_group("a\nb"), "group"),
        (lambda: require_campaign_id("slot_1"), "campaignId"),
        (lambda: to_required_change("opensAt", None), "opensAt"),
        (lambda: AuditLogFilter(by=ID("nobody")).to_domain(), "by"),
    ],
)
def test_a_value_rejected_later_names_its_field(convert: Callable[[], object], field: str) -> None:
    with pytest.raises(GraphQLRequestError) as rejected:
        convert()
    located = located_error(rejected.value, path=["any"])
    shown = format_error(located, is_mutation=False)
    assert shown["extensions"] == {"code": "BAD_USER_INPUT", "field": field}


@pytest.mark.parametrize(
    ("problem", "fields"),
    [
        (CreateSlotInput(title="A", resource_ids=[ID("no id")]).to_draft(), ["resourceIds"]),
        (CreateSlotInput(title="A", resource="B", resource_ids=[]).to_draft(), ["resourceIds"]),
        (UpdateSlotInput(slot_id=ID("a"), resource_ids=[ID("b")]).to_changes(), ["resourceIds"]),
        (
            create_campaign(
                CampaignId("a"),
                CreateCampaignInput(
                    name="A",
                    opens_at=NOW,
                    closes_at=NOW + timedelta(days=1),
                    no_show_limit=NoShowLimitInput(count=0, days=0),
                ).to_draft(),
                NOW,
            ),
            ["count", "days"],
        ),
    ],
)
def test_a_value_that_a_rule_rejects_has_the_name_that_an_error_about_it_would_have(
    problem: object, fields: list[str]
) -> None:
    assert isinstance(problem, InvalidInput)
    assert [each.field for each in problem.problems] == fields


@pytest.mark.parametrize("name", ["Björn Becker", "\ufdfa" * MAX_USER_NAME_LENGTH])
def test_every_place_in_the_list_of_users_is_that_of_a_cursor(name: str) -> None:
    place = to_sort_name(name, "Becker", f"{'a' * 64}@{'b' * 255}")
    assert ANY_LIST.decode(ANY_LIST.encode(place)) == place
