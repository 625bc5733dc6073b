"""Clients of the live benchmark: watchers that only note when a state arrives, and bookings.

Each kind runs in a process of its own, so that the watchers do not delay the bookings. Both note
times of `time.monotonic`, which all processes of the machine share.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import cast

import uvloop

OPENING_AT_ONCE = 50
OPEN_TIMEOUT_S = 120.0
DELIVERY_TIMEOUT_S = 60.0
REMAINING = re.compile(rb'"remaining":(\d+)')
TEXT, PING, PONG = 0x81, 0x89, 0x8A
BOOKING_CALLERS = 3
BOOKING_PAUSE_S = 0.005
BOOK = "mutation($id: ID!) { bookSlot(input: {slotId: $id}) { __typename } }"


@dataclass(frozen=True, slots=True)
class Watch:
    """The slots of watchers: watcher `n` watches `slot_ids[n % len(slot_ids)]`.

    The first ones sign in with a token each.
    """

    port: int
    transport: str
    slot_ids: tuple[str, ...]
    count: int
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """When a state reached the first and the last watcher, in monotonic seconds."""

    first: float
    last: float


class Arrivals:
    """The states of one slot as all watchers receive them."""

    def __init__(self) -> None:
        self._remaining = -1
        self._times: list[float] = []
        self._awaited = 0
        self._is_complete = asyncio.Event()

    def expect(self, remaining: int, count: int) -> None:
        """Count from now on the watchers that receive so many free places."""
        self._remaining, self._awaited, self._times = remaining, count, []
        self._is_complete.clear()

    def add(self, remaining: int) -> None:
        """Note that a watcher received a state."""
        if remaining == self._remaining:
            self._times.append(time.monotonic())
            if len(self._times) == self._awaited:
                self._is_complete.set()

    async def wait(self) -> Delivery:
        """Wait for all watchers; raises TimeoutError."""
        async with asyncio.timeout(DELIVERY_TIMEOUT_S):
            await self._is_complete.wait()
        return Delivery(self._times[0], self._times[-1])


class Watcher(asyncio.Protocol):
    """One WebSocket or event stream with a subscription; the first state opens it."""

    def __init__(self, watch: Watch, number: int, arrivals: Arrivals) -> None:
        self._is_socket = watch.transport == "ws"
        self._request = _subscription(watch.slot_ids[number % len(watch.slot_ids)])
        self._token = watch.tokens[number] if number < len(watch.tokens) else ""
        self._arrivals = arrivals
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_socket:
            self._transport.write(
                b"GET /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
            )
        else:
            self._transport.write(post(self._request, "text/event-stream", self._token))

    def data_received(self, data: bytes) -> None:
        """Note a state. Messages are small, and no message of this server is split."""
        if self._is_socket:
            self._receive_frames(data)
        for found in REMAINING.finditer(data):
            self._arrivals.add(int(found[1]))
            if not self.opened.done():
                self.opened.set_result(None)

    def _receive_frames(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 101"):
            subscribe = {"id": "1", "type": "subscribe", "payload": json.loads(self._request)}
            self._transport.write(_frame(TEXT, _connection_init(self._token)))
            self._transport.write(_frame(TEXT, json.dumps(subscribe).encode()))
        elif data[0] == PING:
            self._transport.write(_frame(PONG, data[2 : 2 + data[1]]))

    def connection_lost(self, _: Exception | None) -> None:
        """Fail, if the subscription was never open."""
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the server closed a watcher"))


def _subscription(slot_id: str) -> bytes:
    query = "subscription($id: ID!) { slotAvailability(slotIds: [$id]) { slotId remaining } }"
    return json.dumps({"query": query, "variables": {"id": slot_id}}).encode()


def _connection_init(token: str) -> bytes:
    payload = {"Authorization": f"Bearer {token}"} if token else {}
    return json.dumps({"type": "connection_init", "payload": payload}).encode()


def _frame(kind: int, payload: bytes) -> bytes:
    """Return a frame of a client; its mask of zeros leaves the payload as it is."""
    size = len(payload)
    head = bytes((kind, 0x80 | size)) if size < 126 else bytes((kind, 0xFE)) + size.to_bytes(2)
    return head + bytes(4) + payload


def post(body: bytes, accept: str, token: str = "") -> bytes:
    """Return a GraphQL request, with the access token of a session if there is one."""
    bearer = f"Authorization: Bearer {token}\r\n" if token else ""
    return (
        f"POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Accept: {accept}\r\n{bearer}Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def watch_slots(pipe: Connection, watch: Watch) -> None:
    """Open the watchers; then answer each `(remaining, count)` with a Delivery, until None."""
    uvloop.run(_watch_slots(pipe, watch))


async def _watch_slots(pipe: Connection, watch: Watch) -> None:
    arrivals, loop = Arrivals(), asyncio.get_running_loop()
    opening, watchers = asyncio.Semaphore(OPENING_AT_ONCE), list[Watcher]()

    async def open_watcher(number: int) -> None:
        async with opening:
            watcher = Watcher(watch, number, arrivals)
            watchers.append(watcher)
            await loop.create_connection(lambda: watcher, "127.0.0.1", watch.port)
            await watcher.opened

    async with asyncio.timeout(OPEN_TIMEOUT_S):
        await asyncio.gather(*map(open_watcher, range(watch.count)))
    pipe.send(None)
    while (expected := await asyncio.to_thread(pipe.recv)) is not None:
        arrivals.expect(*expected)
        pipe.send(None)
        pipe.send(await arrivals.wait())


@dataclass(frozen=True, slots=True)
class Booking:
    """When a booking was requested and answered, in monotonic seconds."""

    start: float
    end: float


def book_elsewhere(
    pipe: Connection, port: int, tokens: list[str], slot_ids: tuple[str, ...]
) -> None:
    """Book one place in each slot until anything arrives; then send the bookings."""
    uvloop.run(_book_elsewhere(pipe, port, tokens, slot_ids))


async def _book_elsewhere(
    pipe: Connection, port: int, tokens: list[str], slot_ids: tuple[str, ...]
) -> None:
    bookings, remaining = list[Booking](), iter(slot_ids)

    async def call(token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for slot_id in remaining:
            start = time.monotonic()
            await book(reader, writer, slot_id, token)
            bookings.append(Booking(start, time.monotonic()))
            await asyncio.sleep(BOOKING_PAUSE_S)

    callers = asyncio.gather(*(call(token) for token in tokens[:BOOKING_CALLERS]))
    stop = asyncio.ensure_future(asyncio.to_thread(pipe.recv))
    await asyncio.wait((callers, stop), return_when=asyncio.FIRST_COMPLETED)
    if callers.done():
        callers.result()  # raises why a caller failed
        raise RuntimeError("no slot is left to book")
    callers.cancel()
    await asyncio.gather(callers, return_exceptions=True)
    pipe.send(bookings)


async def book(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, slot_id: str, token: str
) -> None:
    """Book a place; raises RuntimeError if the response is not a booking."""
    body = json.dumps({"query": BOOK, "variables": {"id": slot_id}}).encode()
    writer.write(post(body, "application/json", token))
    response = await read_response(reader)
    if b'"Booked"' not in response:
        raise RuntimeError(f"not booked: {response[:300]!r}")


async def read_response(reader: asyncio.StreamReader) -> bytes:
    """Return the body of the next response."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return await reader.readexactly(int(length[1]) if length else 0)
