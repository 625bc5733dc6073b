"""References are read together: the commands for a list do not grow with its length."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

import pytest

from slotlock.auth.container import Auth
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import to_availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.graphql.context import UNKNOWN_CLIENT, Context
from slotlock.graphql.core.ids import series_global_id, slot_global_id, user_global_id
from slotlock.graphql.execution.document_cache import DocumentCache, Operation
from slotlock.graphql.execution.operation_executor import GraphQLResponse, execute_operation
from slotlock.graphql.execution.shared_operations import SharedOperations
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.schema.schema import executable_schema
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_series_id
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS
from slotlock.services.container import Services
from tests.support.clients.client import WATCH_AVAILABILITY, Json
from tests.support.domain.builders import HOUR, NOW
from tests.support.stores.query_plans import CommandRecorder, recorded_commands
from tests.support.stores.slot_store import ADA, ORGANIZER, SlotStore, cancel_update

__all__ = ["recorded_commands"]

AUDIT_LOG = """query($user: ID!) { auditLog(filter: {userId: $user}, first: 100) { nodes {
  bookingId %s
} } }"""
BOOKING = "booking { id status slot { id title } }"
SERIES = """query { slots(first: 100) { nodes {
  id %s
} } }"""
SERIES_SLOTS = "series { id slots(first: 3) { nodes { id title } pageInfo { hasNextPage } } }"
WATCH_SLOT = """subscription($slots: [ID!]!) { slotAvailability(slotIds: $slots) {
  version remaining slot { id version remaining myBooking { id } }
} }"""
SUBSCRIBER_COUNT = 40
MAX_COMMANDS = 10


def caller(user_id: UserId, role: Role = Role.MEMBER) -> Caller:
    """Return a signed-in caller."""
    return Caller(user_id, role, "session", NOW + HOUR)


ORGANIZING = caller(ORGANIZER, Role.ORGANIZER)


def find_operation(text: str, *, is_compiled: bool = True) -> Operation:
    """Return the operation of a document, to be executed by its plan or by graphql-core."""
    operation = DocumentCache(executable_schema, introspection=True).resolve_operation(text, None)
    assert operation.compiled is not None
    return operation if is_compiled else dataclasses.replace(operation, compiled=None)


@dataclasses.dataclass(frozen=True)
class RecordedApi:
    """The API on a database whose commands are recorded."""

    store: SlotStore
    services: Services
    recorder: CommandRecorder

    def context(self, viewer: Caller | None) -> Context:
        """Return the context of one operation."""
        auth, limits = cast("Auth", None), cast("OperationRateLimits", None)
        return Context(self.services, auth, limits, viewer, UNKNOWN_CLIENT, public_reads=True)

    async def execute(self, text: str, **variables: Any) -> tuple[Json, list[Document]]:
        """Execute a query by an organizer. Returns the data and the commands that it took."""
        self.recorder.commands.clear()
        response = await execute_operation(
            find_operation(text), variables, self.context(ORGANIZING)
        )
        commands = list(self.recorder.commands)
        generic = await execute_operation(
            find_operation(text, is_compiled=False), variables, self.context(ORGANIZING)
        )
        assert response.body == generic.body
        assert "errors" not in response.body, response.body
        (field,) = response.body["data"].values()
        return field, commands

    def watch(
        self, operation: Operation, slot_id: SlotId, viewer: Caller | None, shared: SharedOperations
    ) -> AsyncGenerator[GraphQLResponse, None]:
        """Subscribe to the availability of a slot."""
        variables = {"slots": [slot_global_id(slot_id)]}
        return execute_stream(operation, variables, self.context(viewer), shared)


@pytest.fixture
async def api(
    servers: EmbeddedServers, recorded_commands: tuple[Database, CommandRecorder]
) -> AsyncIterator[RecordedApi]:
    """Yield the API on a new database."""
    database, recorder = recorded_commands
    redis = redis_client(servers.redis_url)
    pipeline = AutoPipeline(redis, MAX_BUDGET_MS)
    try:
        services = Services(database, redis, pipeline, AdmissionQueue(pipeline), lambda: NOW)
        await services.indexes.build_missing()
        yield RecordedApi(SlotStore(database, services), services, recorder)
    finally:
        await pipeline.close()


async def add_bookings(api: RecordedApi, count: int) -> None:
    """Book this many slots for Ada, and as many that she cancels."""
    for _ in range(count):
        for is_cancelled in (False, True):
            slot = await api.store.insert_slot()
            await api.store.book(slot.id, ADA)
            if is_cancelled:
                await api.store.write(cancel_update(await api.store.load(slot.id, ADA)))


async def test_the_bookings_of_the_audit_log_take_two_more_commands_however_many_there_are(
    api: RecordedApi,
) -> None:
    user = user_global_id(ADA)
    for count in (2, 6):
        await add_bookings(api, count)
        _, without = await api.execute(AUDIT_LOG % "", user=user)
        page, commands = await api.execute(AUDIT_LOG % BOOKING, user=user)
        assert len(commands) == len(without) + 2
        shown = [entry["booking"] for entry in page["nodes"]]
        assert [entry["bookingId"] for entry in page["nodes"]] == [each["id"] for each in shown]
    assert {each["status"] for each in shown} == {"CONFIRMED", "CANCELLED"}
    assert len({each["id"] for each in shown}) == 16


async def test_the_slots_of_a_series_are_read_once_for_all_that_refer(api: RecordedApi) -> None:
    series_id = new_series_id()
    for count in (5, 20):
        for _ in range(count):
            await api.store.insert_slot(series_id=series_id)
        _, without = await api.execute(SERIES % "series { id }")
        page, commands = await api.execute(SERIES % SERIES_SLOTS)
        assert (len(without), len(commands)) == (1, 2)
        first_three = [{"id": each["id"], "title": "Yoga"} for each in page["nodes"][:3]]
        for slot in page["nodes"]:
            shown = {"nodes": first_three, "pageInfo": {"hasNextPage": True}}
            assert slot["series"] == {"id": series_global_id(series_id), "slots": shown}


async def test_different_series_are_read_together(api: RecordedApi) -> None:
    for _ in range(12):
        await api.store.insert_slot(series_id=new_series_id())
    page, commands = await api.execute(SERIES % SERIES_SLOTS)
    assert len(commands) == 2
    assert [slot["series"]["slots"]["nodes"][0]["id"] for slot in page["nodes"]] == [
        slot["id"] for slot in page["nodes"]
    ]


async def published_states(
    api: RecordedApi, text: str, *, is_compiled: bool = True
) -> tuple[list[Json], list[Document]]:
    """Let many users watch a slot that Ada then books.

    Returns what each of them received, Ada first, and the commands after her booking.
    """
    slot, shared = await api.store.insert_slot(5), SharedOperations()
    users = [ADA, *(UserId(f"{number:024x}") for number in range(1, SUBSCRIBER_COUNT))]
    operation = find_operation(text, is_compiled=is_compiled)
    streams = [api.watch(operation, slot.id, caller(user), shared) for user in users]
    async with AsyncExitStack() as stack:
        for stream in streams:
            await stack.enter_async_context(aclosing(stream))
        await asyncio.gather(*map(anext, streams))
        await api.store.book(slot.id, ADA)
        booked = await api.store.load(slot.id, ADA)
        api.recorder.commands.clear()
        waiting = asyncio.gather(*map(anext, streams))
        assert api.services.availability.publish(to_availability(booked))
        responses = await waiting
        commands = list(api.recorder.commands)
    assert not any("errors" in response.body for response in responses)
    return [response.body["data"]["slotAvailability"] for response in responses], commands


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_subscribers_who_select_the_slot_share_its_reads_and_see_their_own_booking(
    api: RecordedApi, is_compiled: bool
) -> None:
    states, commands = await published_states(api, WATCH_SLOT, is_compiled=is_compiled)
    assert 1 <= len(commands) <= MAX_COMMANDS < SUBSCRIBER_COUNT
    assert {(state["version"], state["remaining"]) for state in states} == {(2, 4)}
    assert {(state["slot"]["version"], state["slot"]["remaining"]) for state in states} == {(2, 4)}
    own, *others = [state["slot"]["myBooking"] for state in states]
    assert own is not None
    assert others == [None] * len(others)


@pytest.mark.parametrize("is_compiled", [True, False])
async def test_subscribers_who_do_not_select_the_slot_read_nothing(
    api: RecordedApi, is_compiled: bool
) -> None:
    states, commands = await published_states(api, WATCH_AVAILABILITY, is_compiled=is_compiled)
    assert commands == []
    assert {(state["version"], state["remaining"]) for state in states} == {(2, 4)}
