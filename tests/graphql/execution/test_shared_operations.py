"""Responses that subscribers share depend on no caller, and are forgotten with the subscribers."""

import weakref
from dataclasses import replace
from typing import cast

import pytest
from graphql import get_named_type, is_leaf_type, is_object_type

from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.graphql.context import UNKNOWN_CLIENT, Context, Identity
from slotlock.graphql.execution.documents import DocumentCache, Operation
from slotlock.graphql.execution.shared_operations import SharedOperations
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.availability_events import SLOT_FIELD
from slotlock.services.container import Services
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.domain.builders import NOW

STATE = Availability(SlotId("a" * 24), 7, 5, 3, SlotStatus.PUBLISHED, NOW)
FRAGMENTS = """subscription($slots: [ID!]!, $with: Boolean!) { ...Root }
fragment Root on Subscription { slotAvailability(slotIds: $slots) { version ...Size } }
fragment Size on SlotAvailability { capacity @include(if: $with) }"""
DIRECTIVES = """subscription($slots: [ID!]!, $with: Boolean!) {
  slotAvailability(slotIds: $slots) { version ... @include(if: $with) { capacity } }
}"""


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


def test_the_events_that_are_shared_have_no_field_that_could_depend_on_a_caller() -> None:
    event_type = executable_schema.get_type("SlotAvailability")
    assert is_object_type(event_type)
    shared_fields = {name: each for name, each in event_type.fields.items() if name != SLOT_FIELD}
    assert len(shared_fields) == len(event_type.fields) - 1
    for schema_field in shared_fields.values():
        assert is_leaf_type(get_named_type(schema_field.type))
        assert not schema_field.args
        strawberry_field = schema_field.extensions["strawberry-definition"]
        assert strawberry_field.base_resolver is None


def test_callers_with_equal_operations_share_a_response_that_is_encoded_once() -> None:
    operation, operations = find_operation(WATCH_AVAILABILITY), SharedOperations()
    anonymous = operations.find(operation, {"slots": ["slot_x"]}, context())
    rejected = operations.find(operation, {"slots": ["slot_y"]}, context(BadTokenError("no")))
    assert rejected is anonymous
    response = anonymous.respond(STATE)
    assert response.body["data"]["slotAvailability"]["remaining"] == 3
    assert anonymous.respond(replace(STATE)) is response
    assert response.encode() is response.encode()


@pytest.mark.parametrize("other", [replace(STATE, version=8), replace(STATE, remaining=2)])
def test_another_state_gets_a_response_of_its_own(other: Availability) -> None:
    operation = find_operation(WATCH_AVAILABILITY)
    shared = SharedOperations().find(operation, {"slots": ["slot_x"]}, context())
    for state in (STATE, other):
        body = shared.respond(state).body["data"]["slotAvailability"]
        assert (body["version"], body["remaining"]) == (state.version, state.remaining)


@pytest.mark.parametrize("text", [FRAGMENTS, DIRECTIVES])
def test_variables_that_change_the_response_are_not_shared(text: str) -> None:
    operation, operations = find_operation(text), SharedOperations()
    selections = []
    for included in (True, False):
        variables = {"slots": ["slot_x"], "with": included}
        shared = operations.find(operation, variables, context())
        assert operations.find(operation, dict(variables), context()) is shared
        selections.append(set(shared.respond(STATE).body["data"]["slotAvailability"]))
    assert selections == [{"version", "capacity"}, {"version"}]


def test_operations_without_subscribers_are_forgotten() -> None:
    operation, operations = find_operation(WATCH_AVAILABILITY), SharedOperations()
    shared = operations.find(operation, {"slots": ["slot_x"]}, context())
    shared.respond(STATE)
    forgotten = weakref.ref(shared)
    del shared
    assert forgotten() is None
    operations.find(operation, {"slots": ["slot_x"]}, context())
