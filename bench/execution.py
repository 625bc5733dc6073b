"""`python -m bench.execution`: the time to execute a cached document, by its plan and without.

Stub resolvers return the same objects each time, so the figures are those of the execution alone:
variables, arguments, selections, completion. Both ways take turns in each round.
"""

import asyncio
import dataclasses
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from graphql import GraphQLObjectType

from bench.machine import machine_summary
from slotlock.domain.booking import booking, outcomes, slot, slot_state
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.graphql.booking.results import Booked
from slotlock.graphql.context import Context
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.execution.documents import DocumentCache, Operation
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.slots.types import Slot, SlotConnection

ROUNDS = 9
ROUND_S = 0.15
NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
CALLER = Caller(UserId("0" * 24), Role.MEMBER, "session", NOW)
BOOK = """mutation($input: BookSlotInput!) {
  bookSlot(input: $input) {
    __typename
    ... on Booked { booking { id status } slot { id remaining version } }
    ... on Refusal { code message }
  }
}"""
LIST = """query($first: Int!, $from: DateTime, $before: DateTime) {
  slots(
    first: $first
    filter: { startsFrom: $from, startsBefore: $before, onlyWithPlacesLeft: true }
  ) {
    nodes { id title startTime endTime capacity remaining isBooked kind location }
    pageInfo { hasNextPage endCursor }
  }
}"""
BOOK_VARIABLES = {"input": {"slotId": "slot_x", "waitMs": 100, "idempotencyKey": "key"}}
LIST_VARIABLES = {"first": 50, "from": "2030-05-17T00:00:00Z", "before": "2030-05-18T00:00:00Z"}


def build_state(number: int) -> slot_state.SlotState:
    """Build a slot with one free place."""
    facts = slot.Slot(
        id=booking.SlotId(f"{number:024x}"),
        title=f"Slot {number}",
        start=NOW,
        end=NOW + timedelta(hours=1),
        time_zone="Europe/Berlin",
        capacity=1,
        location="Room 1",
        kind=SlotKind.COURSE,
        status=SlotStatus.PUBLISHED,
    )
    return slot_state.SlotState(facts, version=1, changed_at=NOW)


def build_booked() -> Booked:
    """Build the result of a booking."""
    state = build_state(1)
    entry = booking.HistoryEntry(
        NOW, CALLER.user_id, booking.BookingAction.BOOKED, booking.BookingStatus.CONFIRMED
    )
    made = booking.Booking(
        id=booking.BookingId("b"),
        slot_id=state.slot.id,
        user_id=CALLER.user_id,
        history=(entry,),
    )
    outcome = outcomes.Booked(state.slot.id, made)
    return Booked.from_domain(outcome, ResultView(CALLER, {state.slot.id: state}))


def build_page() -> Any:
    """Build a page of 50 slots."""
    states = [build_state(number) for number in range(50)]
    items = [(f"cursor{n}", Slot.from_domain(state, None)) for n, state in enumerate(states)]
    return SlotConnection.from_items(items, has_more=True, after=None)


def replace_resolver(type_name: str, field_name: str, result: object) -> None:
    """Let the resolver of a root field return this object."""

    async def stub(*_: object, **_arguments: object) -> object:
        return result

    root_type = cast("GraphQLObjectType", executable_schema.type_map[type_name])
    field = root_type.fields[field_name]
    field.extensions["strawberry-definition"].base_resolver.wrapped_func = stub


async def microseconds(operation: Operation, variables: dict[str, Any]) -> float:
    """Execute an operation for a while; return the time of one execution."""
    # The stubs need no context.
    context = cast("Context", None)
    count, start = 0, time.process_time()
    while (elapsed := time.process_time() - start) < ROUND_S:
        response = await execute_operation(operation, variables, context)
        count += 1
    if "errors" in response.body:
        raise SystemExit(f"the document failed: {response.body['errors']}")
    return elapsed / count * 1e6


async def measure(name: str, text: str, variables: dict[str, Any]) -> None:
    """Print the times of a document by its plan and by graphql-core, and their ratio."""
    planned = DocumentCache(executable_schema, introspection=False).resolve_operation(text, None)
    unplanned = dataclasses.replace(planned, compiled=None)
    rounds = [
        (await microseconds(unplanned, variables), await microseconds(planned, variables))
        for _ in range(ROUNDS)
    ]
    slow, fast = (statistics.median(times) for times in zip(*rounds, strict=True))
    ratio = statistics.median(one / other for one, other in rounds)
    print(f"{name:28} {slow:12.1f} {fast:10.1f} {ratio:7.1f}")


async def main() -> None:
    """Measure both documents."""
    replace_resolver("Mutation", "bookSlot", build_booked())
    replace_resolver("Query", "slots", build_page())
    print(f"{machine_summary()}; microseconds of CPU an execution, medians of {ROUNDS} rounds")
    print(f"{'document':28} {'graphql-core':>12} {'plan':>10} {'ratio':>7}")
    await measure("bookSlot", BOOK, BOOK_VARIABLES)
    await measure("slots(first: 50)", LIST, LIST_VARIABLES)


if __name__ == "__main__":
    asyncio.run(main())
