"""A plan makes every check of the execution by graphql-core: sessions, result size, errors."""

import dataclasses
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.graphql.context import Context
from slotlock.graphql.execution import operation_executor
from slotlock.graphql.execution.compiled.execution import ResultLimit
from slotlock.graphql.execution.documents import DocumentCache, Operation
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.limits import result_size
from slotlock.graphql.limits.complexity import DOCUMENT_LIMITS
from slotlock.graphql.schema.schema import executable_schema

BOOK = 'bookSlot(input: {slotId: "bad"}) { __typename ... on Refusal { code message } }'
MUTATION = f"mutation {{ a: {BOOK} b: {BOOK} __typename c: {BOOK} }}"
NODES = 'query($ids: [ID!]!) { __typename nodes(ids: $ids) { __typename id } node(id: "x") { id } }'


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
async def test_the_session_is_checked_again_before_each_later_root_field(
    is_compiled: bool,
) -> None:
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
async def test_responses_equal_those_of_graphql_core(
    text: str, variables: dict[str, Any] | None
) -> None:
    expected = await outcome(text, variables, is_compiled=False)
    assert await outcome(text, variables, is_compiled=True) == expected


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_a_result_that_is_too_large_is_an_error(
    monkeypatch: pytest.MonkeyPatch, is_compiled: bool
) -> None:
    limits = dataclasses.replace(DOCUMENT_LIMITS, values=4)
    monkeypatch.setattr(result_size, "DOCUMENT_LIMITS", limits)
    limit = ResultLimit(result_size.result_too_large, max_values=limits.values)
    monkeypatch.setattr(operation_executor, "RESULT_LIMIT", limit)
    body, _ = await outcome(NODES, {"ids": ["x"] * 2}, is_compiled=is_compiled)
    assert {error["extensions"]["code"] for error in body["errors"]} == {"LIMIT_EXCEEDED"}
