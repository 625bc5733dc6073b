"""The rows of the examples detect a program that skips a step or is not disturbed."""

import asyncio
from typing import cast

import pytest

from conformance.examples.programs import EXPECTED_LINES, PART_COUNT, missing_parts
from conformance.examples.proxy import LOST_RESPONSES, LossyProxy, lossy_proxy

COMPLETE_OUTPUT = "\n".join(line.replace(".*", "") for line in EXPECTED_LINES)


def test_a_complete_run_misses_no_part() -> None:
    assert missing_parts(COMPLETE_OUTPUT, LossyProxy(0, lost=list(LOST_RESPONSES))) == []


def test_every_skipped_step_and_every_missing_disturbance_is_named() -> None:
    failures = missing_parts("booked: CONFIRMED", LossyProxy(0, lost=[b"bookSlot("]))
    assert len(failures) == PART_COUNT - 3
    assert "no line like 'held: HELD'" in failures
    assert "no response to refreshSession was lost" in failures


class Echo(asyncio.Protocol):
    """Sends back what it receives."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


class Client(asyncio.Protocol):
    """A connection that records what it receives and whether it was lost."""

    def __init__(self) -> None:
        self.received = b""
        self.has_received, self.lost = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.has_received.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        self.lost.set()

    async def send(self, line: bytes) -> None:
        """Send a line and wait for the response."""
        self.transport.write(line)
        await self.has_received.wait()
        assert self.received == line


async def connect(proxy: LossyProxy) -> Client:
    """Connect with the proxy."""
    _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", proxy.port)
    return client


@pytest.mark.parametrize("mutation", ["refreshSession", "requestBooking"])
async def test_the_first_response_is_lost_with_all_connections_and_no_other(mutation: str) -> None:
    request = f"mutation {{ {mutation}(...) }}\n".encode()
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1")
    async with (
        server,
        lossy_proxy(server.sockets[0].getsockname()[1]) as proxy,
        asyncio.timeout(30),
    ):
        first, second = await connect(proxy), await connect(proxy)
        await first.send(b"hello\n")
        await second.send(b"hello\n")
        first.transport.write(request)
        await first.lost.wait()
        await second.lost.wait()
        assert first.received == b"hello\n"
        third = await connect(proxy)
        await third.send(request)
        third.transport.close()
