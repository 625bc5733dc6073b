"""Compares the fan-out of checkouts: `python -m bench.fan_out CHECKOUT ...` (default: this one).

Each checkout runs one server process. All subscribe to one slot and an organizer changes it again
and again; the checkouts measure in alternation on the same servers. `publish to last` is the time
from the request of the change to its last message. The CPU is that of the server process during a
change, which includes the change itself.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import uvloop

from bench.app_process import PROJECT
from bench.machine import machine_summary
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import CREATE_SLOT, hours_from_now
from tests.support.transport.raw_connection import (
    WEBSOCKET_HANDSHAKE,
    message_frame,
    subscribe_frame,
    websocket_frame,
)

EMAIL, PASSWORD = "admin@slotlock.test", "the password of the fan-out"
LOGIN = """mutation($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) { ... on Session { accessToken } }
}"""
SET_CAPACITY = """mutation($id: ID!, $capacity: Int!) {
  updateSlot(input: {slotId: $id, capacity: $capacity}) { ... on Slot { version } }
}"""
WATCH = """subscription($slots: [ID!]!) {
  slotAvailability(slotIds: $slots) { slotId version remaining isBooked }
}"""
# uvicorn pings with four bytes.
PING_BYTES, PONG_OPCODE = 4, 10
PING_HEADER = bytes((0x89, PING_BYTES))
FIRST_PORT = 18200
OPENING_AT_ONCE = 50
WARM_UP_CHANGES = 3
PAUSE_S = 0.1
TIMEOUT_S = 60


class FanOutError(Exception):
    """A server does not start, or does not do what the measurement needs."""


class Subscribers:
    """The sockets of one checkout, and when a version reached them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.received: list[float] = []
        self.connected: list[asyncio.Transport] = []
        self._marker = b""
        self._all_received = asyncio.Event()

    def expect(self, version: int) -> None:
        """Measure the messages of this version."""
        self._marker = b'"version":%d,' % version
        self.received.clear()
        self._all_received.clear()

    async def wait_until_received(self) -> None:
        """Wait until all sockets have received the version."""
        async with asyncio.timeout(TIMEOUT_S):
            await self._all_received.wait()

    def on_data(self, data: bytes) -> None:
        """Record a message of the expected version."""
        if self._marker in data:
            self.received.append(time.perf_counter())
            if len(self.received) == self.count:
                self._all_received.set()


class Subscriber(asyncio.Protocol):
    """One socket; it parses no more than the measurement needs."""

    def __init__(self, subscribers: Subscribers, slot_id: str) -> None:
        self._subscribers = subscribers
        self._slot_id = slot_id
        self.subscribed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the handshake."""
        self._transport = transport
        self._subscribers.connected.append(transport)
        transport.write(WEBSOCKET_HANDSHAKE)

    def data_received(self, data: bytes) -> None:
        """Subscribe, then pass messages on and answer pings."""
        ping_at = data.find(PING_HEADER)
        if ping_at >= 0:
            payload = data[ping_at + len(PING_HEADER) :][:PING_BYTES]
            self._transport.write(websocket_frame(payload, PONG_OPCODE))
        if self.subscribed.done():
            self._subscribers.on_data(data)
        elif b"101 Switching" in data:
            self._transport.write(message_frame({"type": "connection_init"}))
        elif b"connection_ack" in data:
            self._transport.write(subscribe_frame("1", WATCH, slots=[self._slot_id]))
        elif b'"version"' in data:
            self.subscribed.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if the server closed the socket too early."""
        if not self.subscribed.done():
            self.subscribed.set_exception(FanOutError(f"the server closed a socket: {exc}"))


@dataclass(slots=True)
class Checkout:
    """A running server of one checkout, and its measured changes."""

    name: str
    pid: int
    url: str
    http: httpx.AsyncClient
    slot_id: str
    subscribers: Subscribers
    capacity: int = 10
    to_last_ms: list[float] = field(default_factory=list)
    first_to_last_ms: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    async def measure(self) -> None:
        """Change the slot once."""
        self.capacity += 1
        version = self.capacity - 9  # a slot begins with version 1
        self.subscribers.expect(version)
        cpu_before, started_at = cpu_seconds(self.pid), time.perf_counter()
        variables = {"id": self.slot_id, "capacity": self.capacity}
        changed = await execute(self.http, self.url, SET_CAPACITY, **variables)
        if changed != {"version": version}:
            raise FanOutError(f"the change failed: {changed}")
        await self.subscribers.wait_until_received()
        received = self.subscribers.received
        self.to_last_ms.append((max(received) - started_at) * 1e3)
        self.first_to_last_ms.append((max(received) - min(received)) * 1e3)
        await asyncio.sleep(PAUSE_S)
        spent_s = cpu_seconds(self.pid) - cpu_before
        self.cpu_us.append(spent_s * 1e6 / self.subscribers.count)

    def forget(self) -> None:
        """Drop the measurements of the warm-up."""
        self.to_last_ms.clear()
        self.first_to_last_ms.clear()
        self.cpu_us.clear()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


async def execute(http: httpx.AsyncClient, url: str, document: str, **variables: Any) -> Any:
    """Send a document and return its only field."""
    response = await http.post(url + "/graphql", json={"query": document, "variables": variables})
    result = response.json()
    if "errors" in result:
        raise FanOutError(str(result["errors"]))
    (value,) = result["data"].values()
    return value


@contextmanager
def running_server(
    folder: Path, servers: EmbeddedServers, port: int, log_file: Path
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the server of a checkout until the context is left."""
    settings = {
        "SLOTLOCK_MONGO_URL": database_url(servers, f"fan_out_{port}"),
        "SLOTLOCK_REDIS_URL": servers.redis_url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_ADMIN_EMAIL": EMAIL,
        "SLOTLOCK_ADMIN_PASSWORD": PASSWORD,
        "SLOTLOCK_RATE_LIMITS": "off",
        "SLOTLOCK_MAX_SOCKETS": "20000",
        "SLOTLOCK_STREAMS_PER_ADDRESS": "19999",
        "PORT": str(port),
        "PYTHONPATH": str(folder),
    }
    command = (sys.executable, "-m", "slotlock", "serve")
    environment = {**os.environ, **settings}
    with (
        log_file.open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


async def open_checkout(
    stack: AsyncExitStack, folder: Path, servers: EmbeddedServers, port: int, count: int, log: Path
) -> Checkout:
    """Start the server of a checkout and open its subscriptions."""
    process = stack.enter_context(running_server(folder, servers, port, log))
    http = await stack.enter_async_context(httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False))
    url = f"http://127.0.0.1:{port}"
    await wait_until_ready(http, url, log)
    session = await execute(http, url, LOGIN, email=EMAIL, password=PASSWORD)
    http.headers["Authorization"] = f"Bearer {session['accessToken']}"
    slot_input = {
        "title": "A slot",
        "startTime": hours_from_now(24),
        "endTime": hours_from_now(25),
        "capacity": 10,
    }
    slot = await execute(http, url, CREATE_SLOT, input=slot_input)
    subscribers = Subscribers(count)
    loop = asyncio.get_running_loop()

    async def subscribe() -> None:
        _, subscriber = await loop.create_connection(
            lambda: Subscriber(subscribers, slot["id"]), "127.0.0.1", port
        )
        await subscriber.subscribed

    for opened in range(0, count, OPENING_AT_ONCE):
        batch = min(OPENING_AT_ONCE, count - opened)
        await asyncio.gather(*(subscribe() for _ in range(batch)))
    return Checkout(folder.name, process.pid, url, http, slot["id"], subscribers)


async def wait_until_ready(http: httpx.AsyncClient, url: str, log: Path) -> None:
    """Wait until the server is ready; raises FanOutError with its log."""
    for _ in range(300):
        try:
            if (await http.get(url + "/readyz")).status_code == 200:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)
    raise FanOutError(f"the server is not ready: {log.open().read()}")


async def compare(folders: Sequence[Path], count: int, changes: int, rounds: int) -> None:
    """Measure all checkouts in alternation and print the medians."""
    async with AsyncExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="slotlock-fan-out-"))
        servers = stack.enter_context(embedded_servers(Path(data, "servers")))
        checkouts = [
            await open_checkout(
                stack, folder, servers, FIRST_PORT + number, count, Path(data, f"{number}.log")
            )
            for number, folder in enumerate(folders)
        ]
        for checkout in checkouts:
            for _ in range(WARM_UP_CHANGES):
                await checkout.measure()
            checkout.forget()
        for _ in range(rounds):
            for checkout in checkouts:
                for _ in range(changes):
                    await checkout.measure()
        for checkout in checkouts:
            print(json.dumps(summary(checkout)), flush=True)


def summary(checkout: Checkout) -> dict[str, object]:
    """Return the medians of a checkout."""
    return {
        "checkout": checkout.name,
        "publish to last, ms": round(median(checkout.to_last_ms), 1),
        "first to last, ms": round(median(checkout.first_to_last_ms), 1),
        "CPU a delivery, us": round(median(checkout.cpu_us), 1),
    }


def main() -> None:
    """Measure the checkouts that the arguments name."""
    parser = argparse.ArgumentParser(prog="bench.fan_out", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[PROJECT])
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    print(machine_summary(), flush=True)
    folders = [folder.resolve() for folder in args.checkouts]
    uvloop.run(compare(folders, args.subscribers, args.changes, args.rounds))


if __name__ == "__main__":
    main()
