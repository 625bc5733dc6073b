"""Subscribers of one slot: equal bytes for equal operations, and no client affects another."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import orjson
import pytest
from starlette.types import Message

from slotlock.api.app_state import AppState, open_app_state
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.graphql.context import Context
from slotlock.graphql.execution import shared_operations
from slotlock.graphql.execution.document_cache import Operation
from slotlock.graphql.execution.operation_executor import (
    GraphQLResponse,
    Variables,
    execute_shared_event,
)
from slotlock.graphql.transport.push.direct_writes import EXTENSION, DirectWrites
from slotlock.graphql.transport.websocket import PROTOCOL
from slotlock.services.container import utc_now
from tests.support.apps.processes import app_settings
from tests.support.clients.client import WATCH_AVAILABILITY, Json
from tests.support.polling import eventually
from tests.support.stores.slots import insert_slot

# The channel of a subscription is sent to Redis within fewer rounds of the event loop.
MAX_START_ROUNDS = 20
WATCH_VERSION = """subscription($slots: [ID!]!, $full: Boolean = false) {
  slotAvailability(slotIds: $slots) { version capacity @include(if: $full) }
}"""


@pytest.fixture
async def state(servers: EmbeddedServers) -> AsyncIterator[AppState]:
    settings = app_settings(servers, "pushed")
    async with open_app_state(settings, development=False) as opened:
        yield opened


class Client:
    """A client in this process, whose socket the server may write to directly."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._events: asyncio.Queue[Message] = asyncio.Queue()
        self._on_writable: Callable[[], None] = lambda: None
        self.is_reading = True
        self._resumed = asyncio.Event()
        self.written: list[bytes] = []
        self.awaited: list[Json] = []
        # Called before each direct write.
        self.on_write: Callable[[], None] = lambda: None
        self._events.put_nowait({"type": "websocket.connect"})
        self.send({"type": "connection_init"})
        writes = DirectWrites(lambda: self.is_reading, bytes, self._write, self._set_on_writable)
        scope = {
            "type": "websocket",
            "headers": [],
            "subprotocols": [PROTOCOL],
            "extensions": {EXTENSION: writes},
        }
        self.serving = asyncio.create_task(
            state.graphql_websocket(scope, self._events.get, self._receive_awaited)
        )

    def send(self, message: Json) -> None:
        """Send a message to the server."""
        self._events.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    async def subscribe(
        self,
        slot_id: SlotId,
        operation_id: str = "1",
        query: str = WATCH_VERSION,
        **variables: bool,
    ) -> None:
        """Subscribe to a slot and wait for its present state."""
        all_variables = {"slots": [f"slot_{slot_id}"], **variables}
        payload = {"query": query, "variables": all_variables}
        expected = len(self.written) + 1
        self.send({"id": operation_id, "type": "subscribe", "payload": payload})
        await self.wait_for_responses(expected)

    async def wait_for_responses(self, count: int) -> None:
        """Wait until so many responses were written directly."""

        async def are_written() -> bool:
            return len(self.written) >= count

        await eventually(are_written, f"{count} responses")

    async def wait_for_awaited(self, kind: str) -> None:
        """Wait until the server has sent a message of this type, which it awaited."""

        async def is_sent() -> bool:
            return any(message["type"] == kind for message in self.awaited)

        await eventually(is_sent, f"a message {kind}")

    def resume(self) -> None:
        """Read again."""
        self.is_reading = True
        self._resumed.set()
        self._on_writable()

    async def disconnect(self) -> None:
        """Close the socket and wait until the server has ended it."""
        self._events.put_nowait({"type": "websocket.disconnect", "code": 1006})
        await self.serving

    @property
    def results(self) -> list[Json]:
        """The events that were written directly."""
        messages = [orjson.loads(text) for text in self.written]
        return [message["payload"]["data"]["slotAvailability"] for message in messages]

    @property
    def versions(self) -> list[int]:
        """The versions that were written directly."""
        return [result["version"] for result in self.results]

    def _write(self, text: bytes) -> None:
        assert self.is_reading
        self.on_write()
        self.written.append(text)

    def _set_on_writable(self, callback: Callable[[], None]) -> None:
        self._on_writable = callback

    async def _receive_awaited(self, message: Message) -> None:
        self.awaited.append({"type": message["type"]} | json.loads(message.get("text", "{}")))
        if message["type"] == "websocket.close" and not self.is_reading:
            await self._resumed.wait()


def publish(state: AppState, slot_id: SlotId, version: int) -> None:
    """Publish a state of a slot."""
    availability = Availability(slot_id, version, 5, 5, SlotStatus.PUBLISHED, utc_now())
    state.graphql_server.services.availability.publish(availability)


def payload_bytes(client: Client) -> bytes:
    """Return the bytes of the latest response without the operation id."""
    _, separator, payload = client.written[-1].partition(b'"payload":')
    assert separator
    return payload


async def let_deliveries_run() -> None:
    """Wait for more rounds of the event loop than the deliveries of these tests take."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def executions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the events that are executed from now on."""
    executed: list[object] = []

    def record_and_execute(
        operation: Operation, variables: Variables | None, context: Context, event: object
    ) -> GraphQLResponse:
        executed.append(event)
        return execute_shared_event(operation, variables, context, event)

    monkeypatch.setattr(shared_operations, "execute_shared_event", record_and_execute)
    return executed


async def test_equal_subscriptions_get_equal_bytes_of_one_execution_under_their_own_ids(
    state: AppState, executions: list[object]
) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    clients = [Client(state) for _ in range(5)]
    for number, client in enumerate(clients):
        await client.subscribe(slot_id, f"id-{number}", WATCH_AVAILABILITY)
    assert len(executions) == 1
    publish(state, slot_id, 2)
    for client in clients:
        await client.wait_for_responses(2)
    assert len(executions) == 2
    assert len({payload_bytes(client) for client in clients}) == 1
    latest = [orjson.loads(client.written[-1]) for client in clients]
    assert [message["id"] for message in latest] == [f"id-{number}" for number in range(5)]
    assert {message["type"] for message in latest} == {"next"}
    for client in clients:
        await client.disconnect()


async def test_subscriptions_with_different_selections_or_variables_get_different_responses(
    state: AppState, executions: list[object]
) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    client = Client(state)
    await client.subscribe(slot_id, "version")
    await client.subscribe(slot_id, "full", full=True)
    await client.subscribe(slot_id, "all", WATCH_AVAILABILITY)
    executions.clear()
    publish(state, slot_id, 2)
    await client.wait_for_responses(6)
    responses = {
        orjson.loads(text)["id"]: result
        for text, result in zip(client.written[3:], client.results[3:], strict=True)
    }
    assert responses["version"] == {"version": 2}
    assert responses["full"] == {"version": 2, "capacity": 5}
    assert responses["all"]["slotId"] == f"slot_{slot_id}"
    assert len(executions) == 3
    await client.disconnect()


async def test_subscriptions_to_different_lists_of_slots_share_the_responses(
    state: AppState, executions: list[object]
) -> None:
    slot_id, other_id = (
        await insert_slot(state.graphql_server.services),
        await insert_slot(state.graphql_server.services),
    )
    client, other_client = Client(state), Client(state)
    await client.subscribe(slot_id)
    await other_client.subscribe(slot_id)
    both = {"slots": [f"slot_{other_id}", f"slot_{slot_id}"]}
    other_client.send(
        {"id": "both", "type": "subscribe", "payload": {"query": WATCH_VERSION, "variables": both}}
    )
    await other_client.wait_for_responses(3)
    executions.clear()
    publish(state, slot_id, 2)
    await other_client.wait_for_responses(5)
    assert len(executions) == 1
    publish(state, other_id, 3)
    await other_client.wait_for_responses(6)
    assert (client.versions, other_client.versions[-1]) == ([1, 2], 3)
    await client.disconnect()
    await other_client.disconnect()


async def test_a_slow_reader_gets_the_latest_state_only_and_delays_nobody(state: AppState) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    slow, fast = Client(state), Client(state)
    await slow.subscribe(slot_id)
    await fast.subscribe(slot_id)
    slow.is_reading = False
    for version in range(2, 50):
        publish(state, slot_id, version)
        await fast.wait_for_responses(version)
    assert fast.versions == list(range(1, 50))
    assert slow.versions == [1]
    slow.resume()
    await slow.wait_for_responses(2)
    publish(state, slot_id, 50)
    await slow.wait_for_responses(3)
    assert slow.versions == [1, 49, 50]
    await slow.disconnect()
    await fast.disconnect()


async def test_a_full_socket_gets_the_rest_after_its_client_has_read(state: AppState) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    client = Client(state)
    for number in range(3):
        await client.subscribe(slot_id, str(number))

    def stop_reading() -> None:
        client.is_reading = False

    client.on_write = stop_reading
    publish(state, slot_id, 2)
    for count in (4, 5, 6):
        await client.wait_for_responses(count)
        await let_deliveries_run()
        assert len(client.written) == count
        client.resume()
    await let_deliveries_run()
    assert client.versions == [1, 1, 1, 2, 2, 2]
    await client.disconnect()


async def test_subscribers_that_leave_during_a_fan_out_harm_nobody(state: AppState) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    clients = [Client(state) for _ in range(9)]
    for client in clients:
        await client.subscribe(slot_id)
    leavers = clients[::3]

    def leave() -> None:
        for leaver in leavers:
            leaver.serving.cancel()

    for client in clients:
        client.on_write = leave
    publish(state, slot_id, 2)
    remaining = [client for client in clients if client not in leavers]
    for client in remaining:
        await client.wait_for_responses(2)
    await asyncio.gather(*(leaver.serving for leaver in leavers), return_exceptions=True)
    for client in remaining:
        client.on_write = lambda: None
    publish(state, slot_id, 3)
    for client in remaining:
        await client.wait_for_responses(3)
        assert client.versions == [1, 2, 3]
        await client.disconnect()
    assert all(3 not in leaver.versions for leaver in leavers)
    assert not state.graphql_server.services.availability.subscribed_slot_ids


async def test_a_write_that_fails_ends_its_own_subscription_alone(state: AppState) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    failing, working = Client(state), Client(state)
    await failing.subscribe(slot_id)
    await working.subscribe(slot_id)

    def fail() -> None:
        raise RuntimeError("the write failed")

    failing.on_write = fail
    publish(state, slot_id, 2)
    await working.wait_for_responses(2)
    await failing.wait_for_awaited("error")
    assert failing.awaited[-1]["type"] == "error"
    assert failing.awaited[-1]["payload"][0]["extensions"]["code"] == "INTERNAL"
    publish(state, slot_id, 3)
    await working.wait_for_responses(3)
    assert failing.versions == [1]
    await failing.disconnect()
    await working.disconnect()


PROBE = {"id": "1", "type": "subscribe", "payload": {"query": "{ __typename }"}}


@pytest.mark.parametrize(
    ("messages", "awaited", "versions"),
    [
        ([{"id": "1", "type": "complete"}, PROBE], "complete", [1]),
        ([{"type": "unknown"}], "websocket.close", [1]),
        ([{**PROBE, "id": "2"}], "complete", [1, 2, 3]),
    ],
    ids=["completed", "closed", "control: it goes on"],
)
async def test_an_operation_that_has_ended_gets_no_pending_state(
    state: AppState, messages: list[Json], awaited: str, versions: list[int]
) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    client = Client(state)
    await client.subscribe(slot_id)
    client.is_reading = False
    publish(state, slot_id, 2)
    for message in messages:
        client.send(message)
    await client.wait_for_awaited(awaited)
    client.resume()
    await let_deliveries_run()
    publish(state, slot_id, 3)
    await let_deliveries_run()
    assert client.versions == versions
    await client.disconnect()


async def test_a_subscription_completed_at_any_moment_of_its_start_ends(state: AppState) -> None:
    slot_id = await insert_slot(state.graphql_server.services)
    client = Client(state)
    await client.wait_for_awaited("connection_ack")
    payload = {"query": WATCH_VERSION, "variables": {"slots": [f"slot_{slot_id}"]}}
    availability = state.graphql_server.services.availability

    async def has_ended() -> bool:
        return not availability.subscribed_slot_ids

    for rounds in range(MAX_START_ROUNDS):
        client.send({"id": "1", "type": "subscribe", "payload": payload})
        while not availability.subscribed_slot_ids:
            await asyncio.sleep(0)
        for _ in range(rounds):
            await asyncio.sleep(0)
        client.send({"id": "1", "type": "complete"})
        client.send({"id": "2", "type": "subscribe", "payload": {"query": "{ __typename }"}})
        await client.wait_for_awaited("complete")
        await eventually(has_ended, f"the end, completed after {rounds} rounds")
        client.awaited.clear()
    await client.disconnect()
