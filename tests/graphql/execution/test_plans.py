"""Plans make every check of graphql-core, and shared responses depend on no caller."""

import dataclasses
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from graphql import get_named_type, is_leaf_type, is_object_type

from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.graphql.campaigns import campaign_changes
from slotlock.graphql.context import UNKNOWN_CLIENT, Context, Identity
from slotlock.graphql.execution import operation_executor
from slotlock.graphql.execution.document_cache import DocumentCache, Operation
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.execution.shared_operations import SharedOperations
from slotlock.graphql.limits import result_size
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.availability_events import SLOT_FIELD, SlotAvailability
from slotlock.services.container import Services
from strawberry_compiled import ResultLimit
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.domain.builders import NOW

BOOK = 'bookSlot(input: {slotId: "bad"}) { __typename ... on Refusal { code message } }'
MUTATION = f"mutation {{ a: {BOOK} b: {BOOK} __typename c: {BOOK} }}"
NODES = 'query($ids: [ID!]!) { __typename nodes(ids: $ids) { __typename id } node(id: "x") { id } }'
STATE = Availability(SlotId("a" * 24), 7, 5, 3, SlotStatus.PUBLISHED, NOW)
FRAGMENTS = """subscription($slots: [ID!]!, $with: Boolean!) { ...Root }
fragment Root on Subscription { slotAvailability(slotIds: $slots) { version ...Size } }
fragment Size on SlotAvailability { capacity @include(if: $with) }"""
DIRECTIVES = """subscription($slots: [ID!]!, $with: Boolean!) {
  slotAvailability(slotIds: $slots) { version ... @include(if: $with) { capacity } }
}"""


class RecordingContext:
    """A context that records who asks it for what."""

    services = None

    def __init__(self) -> None:
        self.events: list[str] = []

    async def recheck_session(self) -> None:
        """Record a check of the session."""
        self.events.append("recheck")

    @property
    def caller(self) -> Caller:
        """Record a use of the caller."""
        self.events.append("caller")
        return Caller(UserId("0" * 24), Role.MEMBER, "session", datetime.max.replace(tzinfo=UTC))

    optional_caller = viewer = caller


def resolve_operation(text: str, *, is_compiled: bool) -> Operation:
    """Resolve the only operation of a document, to be executed by its plan or by graphql-core."""
    operation = DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    assert operation.compiled is not None
    return operation if is_compiled else dataclasses.replace(operation, compiled=None)


async def outcome(
    text: str, variables: dict[str, Any] | None, *, is_compiled: bool
) -> tuple[dict[str, Any], list[str]]:
    """Execute a document; return the body of the response and the recorded events."""
    context = RecordingContext()
    operation = resolve_operation(text, is_compiled=is_compiled)
    response = await execute_operation(operation, variables, cast("Context", context))
    for error in response.body.get("errors", ()):
        error["extensions"].pop("errorId", None)
    return response.body, context.events


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_the_session_is_checked_again_before_each_later_root_field(is_compiled: bool) -> None:
    body, events = await outcome(MUTATION, None, is_compiled=is_compiled)
    assert "errors" not in body
    assert list(body["data"]) == ["a", "b", "__typename", "c"]
    assert events == ["caller", "recheck", "caller", "recheck", "recheck", "caller"]


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (f"mutation {{ {BOOK} }}", None),
        (NODES, {"ids": ["x", "y"]}),
        (NODES, {"ids": [1, None]}),
        (NODES, {}),
        ("query($first: Int!) { slots(first: $first) { nodes { id } } }", {"first": 2**40}),
        (
            "query($time: DateTime) { slots(filter: {startsFrom: $time}) { nodes { id } } }",
            {"time": "never"},
        ),
        ("{ slots(first: 1000) { nodes { id } } }", None),
    ],
)
async def test_responses_are_those_of_core(text: str, variables: dict[str, Any] | None) -> None:
    expected = await outcome(text, variables, is_compiled=False)
    assert await outcome(text, variables, is_compiled=True) == expected


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_a_result_that_is_too_large_is_an_error(
    monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    monkeypatch.setattr(result_size.ResultSizeLimitExecutor, "max_values", 4)
    limit = ResultLimit(result_size.result_too_large, max_values=4)
    monkeypatch.setattr(operation_executor, "RESULT_LIMIT", limit)
    body, _ = await outcome(NODES, {"ids": ["x"] * 2}, is_compiled=is_compiled)
    assert {error["extensions"]["code"] for error in body["errors"]} == {"LIMIT_EXCEEDED"}


def find_operation(text: str) -> Operation:
    """Parse and validate a document."""
    return DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)


def context(identity: Identity = None) -> Context:
    """Build a context without services: a shared response must need none."""
    return Context(
        cast("Services", None),
        cast("Auth", None),
        cast("OperationRateLimits", None),
        identity,
        UNKNOWN_CLIENT,
        public_reads=False,
    )


TO_EVENT = SlotAvailability.from_domain
# Subscribers who select the first of these share no responses; the state depends on the time alone.
UNSHARED_FIELDS: dict[str, set[str]] = {
    "SlotAvailability": {SLOT_FIELD},
    "Campaign": {*campaign_changes.UNSHARED_FIELDS, "state"},
    "CampaignChange": set(),
    "GroupLimit": set(),
    "NoShowLimit": set(),
}


def test_the_events_that_are_shared_have_no_field_that_could_depend_on_a_caller() -> None:
    for type_name, unshared in UNSHARED_FIELDS.items():
        event_type = executable_schema.get_type(type_name)
        assert is_object_type(event_type)
        assert unshared <= event_type.fields.keys()
        for name in event_type.fields.keys() - unshared:
            schema_field = event_type.fields[name]
            shown = get_named_type(schema_field.type)
            assert is_leaf_type(shown) or shown.name in UNSHARED_FIELDS
            assert not schema_field.args
            strawberry_field = schema_field.extensions["strawberry-definition"]
            assert strawberry_field.base_resolver is None


def test_callers_with_equal_operations_share_a_response_that_is_encoded_once() -> None:
    operation, operations = find_operation(WATCH_AVAILABILITY), SharedOperations()
    anonymous = operations.find(operation, {"slots": ["slot_x"]}, context(), TO_EVENT)
    rejected = operations.find(
        operation, {"slots": ["slot_y"]}, context(BadTokenError("no")), TO_EVENT
    )
    assert rejected is anonymous
    response = anonymous.respond(STATE)
    assert response.body["data"]["slotAvailability"]["remaining"] == 3
    assert anonymous.respond(replace(STATE)) is response
    assert response.encode() is response.encode()


@pytest.mark.parametrize("other", [replace(STATE, version=8), replace(STATE, remaining=2)])
def test_another_state_gets_a_response_of_its_own(other: Availability) -> None:
    operation = find_operation(WATCH_AVAILABILITY)
    shared = SharedOperations().find(operation, {"slots": ["slot_x"]}, context(), TO_EVENT)
    for state in (STATE, other):
        body = shared.respond(state).body["data"]["slotAvailability"]
        assert (body["version"], body["remaining"]) == (state.version, state.remaining)


@pytest.mark.parametrize("text", [FRAGMENTS, DIRECTIVES])
def test_variables_that_change_the_response_are_not_shared(text: str) -> None:
    operation, operations = find_operation(text), SharedOperations()
    selections = []
    for included in (True, False):
        variables = {"slots": ["slot_x"], "with": included}
        shared = operations.find(operation, variables, context(), TO_EVENT)
        assert operations.find(operation, dict(variables), context(), TO_EVENT) is shared
        selections.append(set(shared.respond(STATE).body["data"]["slotAvailability"]))
    assert selections == [{"version", "capacity"}, {"version"}]


def test_operations_without_subscribers_are_forgotten() -> None:
    operation, operations = find_operation(WATCH_AVAILABILITY), SharedOperations()
    shared = operations.find(operation, {"slots": ["slot_x"]}, context(), TO_EVENT)
    shared.respond(STATE)
    forgotten = weakref.ref(shared)
    del shared
    assert forgotten() is None
    operations.find(operation, {"slots": ["slot_x"]}, context(), TO_EVENT)
