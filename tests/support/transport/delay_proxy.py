"""A TCP proxy in front of Redis that delays replies, swallows everything or cuts connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

CHUNK_BYTES = 65_536


class DelayProxy:
    """Forwards connections to a port of this host. Its attributes may change at any time."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.delay_s = 0.0  # until a reply is passed on
        self.commands: list[bytes] = []  # what clients sent, in chunks
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address of Redis behind the proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    def freeze(self) -> None:
        """Pass on nothing until `thaw`. Connections stay open, as with a server that hangs."""
        self._open.clear()

    def thaw(self) -> None:
        """Pass on everything that arrived meanwhile, and what comes."""
        self._open.set()

    def cut(self) -> None:
        """Close all connections."""
        for writer in self._writers:
            writer.close()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side closes it."""
        task = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def close(self) -> None:
        """Close all connections and wait until they have ended."""
        self.thaw()
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(OSError):  # nothing may listen there
            address = ("127.0.0.1", self.target_port)
            target_reader, target_writer = await asyncio.open_connection(*address)
            self._writers |= {writer, target_writer}
            replies = asyncio.create_task(self._forward_replies(target_reader, writer))
            with closing(target_writer), suppress(OSError):
                while data := await reader.read(CHUNK_BYTES):
                    self.commands.append(data)
                    await self._open.wait()
                    target_writer.write(data)
            await replies
            self._writers -= {writer, target_writer}

    async def _forward_replies(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        sender = asyncio.create_task(self._send_when_due(chunks, writer))
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                chunks.put_nowait((loop.time() + self.delay_s, data))
        sender.cancel()
        writer.close()

    async def _send_when_due(
        self, chunks: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter
    ) -> None:
        while True:
            due_at, data = await chunks.get()
            await asyncio.sleep(due_at - asyncio.get_running_loop().time())
            await self._open.wait()
            writer.write(data)


@asynccontextmanager
async def delay_proxy(target_port: int) -> AsyncIterator[DelayProxy]:
    """Run a proxy in front of a port of this host."""
    proxy = DelayProxy(target_port)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1")
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
