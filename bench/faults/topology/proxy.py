"""A process that forwards the connections of all links, and disturbs them on command.

It reads one command a line from its standard input, as JSON, and answers each with `ok`:

    {"listen": {"target": [port, port of the server]}}
    {"processes": {"pid": "source"}}
    {"links": [["source", "target", {"mode": "open", "delay_s": 0, "bytes_per_s": 0}]]}

The source of a connection is the process that opened it. It ends when its input does.
"""

import asyncio
import json
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

from bench.faults.topology.connections import find_connected_process

HOST = "127.0.0.1"
OPEN, CUT, SILENT = "open", "cut", "silent"
UNKNOWN_SOURCE = "campaign"


@dataclass(slots=True, eq=False)
class Link:
    """One direction of traffic between a source and a target, and how it is disturbed.

    A cut link resets its connections and refuses new ones. A silent link accepts them and keeps
    everything back until it is open again, as TCP does while packets are lost.
    """

    mode: str = OPEN
    delay_s: float = 0.0
    bytes_per_s: float = 0.0
    pipes: "set[Pipe]" = field(default_factory=set)

    def change(self, mode: str, delay_s: float, bytes_per_s: float) -> None:
        """Disturb the present and future connections in this way."""
        self.mode, self.delay_s, self.bytes_per_s = mode, delay_s, bytes_per_s
        for pipe in list(self.pipes):
            if mode == CUT:
                pipe.abort()
            else:
                pipe.send_due()


class Pipe(asyncio.Protocol):
    """One end of a forwarded connection: it passes what it receives to the other end."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self.other: Pipe | None = None
        self.link: Link | None = None
        # What waits to be passed on, with the time at which it is due; None is the end.
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        self._free_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the connection."""
        self.transport = cast("asyncio.Transport", transport)

    def join(self, link: Link, other: "Pipe") -> None:
        """Pass on to the other end from now on, as the link allows."""
        self.link, self.other = link, other
        link.pipes.add(self)
        self.send_due()

    def data_received(self, data: bytes) -> None:
        """Pass data on, now or when the link allows it."""
        link = self.link
        if (
            link is not None
            and not self._waiting
            and link.mode == OPEN
            and not link.delay_s
            and not link.bytes_per_s
            and self.other is not None
            and self.other.transport is not None
            and not self.other.transport.is_closing()
        ):
            self.other.transport.write(data)
            return
        self._append(data)

    def _append(self, data: bytes | None) -> None:
        now, link = self._loop.time(), self.link
        due = now
        if link is not None:
            due += link.delay_s
            if link.bytes_per_s and data:
                self._free_at = max(self._free_at, now) + len(data) / link.bytes_per_s
                due = max(due, self._free_at + link.delay_s)
        self._waiting.append((due, data))
        self.send_due()

    def send_due(self) -> None:
        """Pass on everything that is due, and come back for the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.link is None or self.other is None or self.link.mode != OPEN:
            return
        now = self._loop.time()
        is_disturbed = self.link.delay_s or self.link.bytes_per_s
        while self._waiting and (not is_disturbed or self._waiting[0][0] <= now):
            data = self._waiting.popleft()[1]
            if data is None:
                self.link.pipes.discard(self)
            if self.other.transport is None or self.other.transport.is_closing():
                continue
            if data is None:
                self.other.transport.close()
            else:
                self.other.transport.write(data)
        if self._waiting:
            self._timer = self._loop.call_at(self._waiting[0][0], self.send_due)

    def pause_writing(self) -> None:
        """Let the other end stop reading, because this one cannot send."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Let the other end read again."""
        if self.other is not None and self.other.transport is not None:
            with suppress(RuntimeError):
                self.other.transport.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Close the other end, after what was received before."""
        self._append(None)

    def abort(self) -> None:
        """Reset both ends."""
        for pipe in (self, self.other):
            if pipe is not None:
                pipe._waiting.clear()
                if pipe.link is not None:
                    pipe.link.pipes.discard(pipe)
                if pipe.transport is not None:
                    pipe.transport.abort()


class Proxy:
    """All links of a campaign."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._names: dict[int, str] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def execute(self, command: dict[str, Any]) -> None:
        """Execute one command of the campaign."""
        for target, (port, server_port) in command.get("listen", {}).items():
            await self._listen(target, port, server_port)
        for pid, name in command.get("processes", {}).items():
            self._names = {
                known: other for known, other in self._names.items() if other != name
            } | {int(pid): name}
        changes: Iterable[tuple[str, str, dict[str, Any]]] = command.get("links", ())
        for source, target, state in changes:
            self._link(source, target).change(**state)

    def _link(self, source: str, target: str) -> Link:
        return self._links.setdefault((source, target), Link())

    async def _listen(self, target: str, port: int, server_port: int) -> None:
        def accept() -> Pipe:
            return AcceptedPipe(self._loop, self, target, server_port)

        await self._loop.create_server(accept, HOST, port, backlog=1024)

    def forward(self, near: Pipe, target: str, server_port: int) -> None:
        """Connect an accepted connection with the server, if the link is not cut."""
        task = self._loop.create_task(self._forward(near, target, server_port))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, near: Pipe, target: str, server_port: int) -> None:
        transport = near.transport
        if transport is None:
            return
        client, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if client is None or server is None:  # the client has left already
            transport.abort()
            return
        pid = find_connected_process(client, server, self._names)
        source = self._names.get(pid, UNKNOWN_SOURCE) if pid else UNKNOWN_SOURCE
        there, back = self._link(source, target), self._link(target, source)
        if CUT in (there.mode, back.mode):
            transport.abort()
            return
        try:
            _, far = await self._loop.create_connection(lambda: Pipe(self._loop), HOST, server_port)
        except OSError:
            transport.abort()
            return
        near.join(there, far)
        far.join(back, near)


class AcceptedPipe(Pipe):
    """The end of a connection that a client of the server opened."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, proxy: Proxy, target: str, server_port: int
    ) -> None:
        super().__init__(loop)
        self._proxy, self._target, self._server_port = proxy, target, server_port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look for the server's end."""
        super().connection_made(transport)
        self._proxy.forward(self, self._target, self._server_port)


async def serve() -> None:
    """Execute commands until the input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    proxy = Proxy(loop)
    while line := await reader.readline():
        await proxy.execute(json.loads(line))
        print("ok", flush=True)


if __name__ == "__main__":
    uvloop.run(serve())
