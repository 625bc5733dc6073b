"""Direct writes on real connections: with compression, and to a client that does not read."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import orjson
import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from slotlock.api.app_state import AppState, open_app_state
from slotlock.api.server.http_protocol import ServerConfig
from slotlock.api.server.websockets import StrictWebSocketProtocol, _text_frame
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.graphql.transport.websocket import PROTOCOL
from slotlock.services.container import utc_now
from tests.support.apps.processes import app_settings
from tests.support.clients.client import WATCH_AVAILABILITY, WebSocketTestClient
from tests.support.stores.slots import insert_slot
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    message_frame,
    subscribe_frame,
)

SOCKET_BUFFER_BYTES = 8 * 1024
# Each response has about four kilobytes.
LARGE_RESPONSES = (
    "subscription($slots: [ID!]!) { slotAvailability(slotIds: $slots) { version "
    + " ".join(f"{letter * 250}: slotId" for letter in "abcdefghijklmn")
    + " } }"
)
# Far more than fits into the buffers of both kernels and of the server.
LAST_VERSION = 500


class Server:
    """A server in this process with one slot."""

    def __init__(self, state: AppState, address: tuple[str, int], slot_id: SlotId) -> None:
        self._state = state
        self._slot_id = slot_id
        self.address = address
        self.slots = [f"slot_{slot_id}"]

    def publish(self, version: int) -> None:
        """Publish a state of the slot."""
        state = Availability(self._slot_id, version, 5, 5, SlotStatus.PUBLISHED, utc_now())
        self._state.graphql_server.services.availability.publish(state)

    @contextlib.asynccontextmanager
    async def open_websocket(self, compression: str | None) -> AsyncIterator[WebSocketTestClient]:
        """Open a socket up to the acknowledgement."""
        host, port = self.address
        async with connect(
            f"ws://{host}:{port}/graphql",
            subprotocols=[Subprotocol(PROTOCOL)],
            proxy=None,
            compression=compression,
        ) as connection:
            client = WebSocketTestClient(connection)
            await client.send({"type": "connection_init"})
            assert await client.receive() == {"type": "connection_ack"}
            yield client


@pytest.fixture
async def server(servers: EmbeddedServers) -> AsyncIterator[Server]:
    settings = app_settings(servers, "direct")
    async with open_app_state(settings, development=False) as state:
        slot_id = await insert_slot(state.graphql_server.services)
        config = ServerConfig(
            state.graphql_websocket,
            10,
            10,
            60,
            lifespan="off",
            log_config=None,
            ws=StrictWebSocketProtocol,
        )
        uvicorn_server = uvicorn.Server(config)
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
            listener.bind(("127.0.0.1", 0))
            serving = asyncio.create_task(uvicorn_server._serve([listener]))
            while not uvicorn_server.started:
                await asyncio.sleep(0.01)
            yield Server(state, listener.getsockname(), slot_id)
            uvicorn_server.should_exit = True
            await serving


@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_direct_writes_and_awaited_sends_arrive_in_order_with_and_without_compression(
    server: Server, compression: str | None
) -> None:
    async with server.open_websocket(compression) as client:
        assert bool(client.connection.protocol.extensions) is (compression is not None)
        await client.subscribe("1", WATCH_AVAILABILITY, slots=server.slots)
        assert (await client.next_result())["version"] == 1
        for version in range(2, 20):
            server.publish(version)
            assert (await client.next_result())["version"] == version
            await client.subscribe("2", "{ __typename }")
            assert await client.next_result() == "Query"
            assert (await client.receive())["type"] == "complete"


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 100_000])
def test_a_text_frame_of_any_size_is_that_of_the_library(size: int) -> None:
    text = b"x" * size
    assert _text_frame(text) == Frame(Opcode.TEXT, text).serialize(mask=False)


async def test_a_client_that_does_not_read_misses_states_and_delays_nobody(server: Server) -> None:
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_connect(peer, server.address)
        reader, writer = await asyncio.open_connection(sock=peer, limit=SOCKET_BUFFER_BYTES)
        writer.write(WEBSOCKET_HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(message_frame({"type": "connection_init"}))
        await reader.readuntil(b"connection_ack")
        writer.write(subscribe_frame("1", LARGE_RESPONSES, slots=server.slots))
        await reader.readuntil(b'"version":1,')
        async with server.open_websocket(None) as fast:
            await fast.subscribe("1", LARGE_RESPONSES, slots=server.slots)
            for version in range(1, LAST_VERSION + 1):
                if version > 1:
                    server.publish(version)
                assert (await fast.next_result())["version"] == version
        versions = [1]
        async with asyncio.timeout(20):
            while versions[-1] != LAST_VERSION:
                await reader.readuntil(b'"version":')
                versions.append(orjson.loads((await reader.readuntil(b","))[:-1]))
        writer.close()
    assert versions == sorted(set(versions))
    assert len(versions) < LAST_VERSION // 2
