"""Records every fencing token that Redis hands out, in the order in which a server executes it."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import orjson

from bench.faults.topology.redis_servers import RedisNode

RECONNECT_S = 0.2
# A line of MONITOR: the time of the server, the source of the command, and the command. A replica
# executes the grants of its master again, but not in a script.
GRANT = re.compile(rb'\+([\d.]+) \[\d+ lua\] "set" "(slotlock:[^"]*:lock)" "[^":]*:(\d+)[:"]')


class FenceRecorder:
    """Writes one line a grant: `{number, node, key, fence, at}`.

    The numbers have no gap; the time of the server is in seconds.
    """

    def __init__(self, nodes: Sequence[RedisNode], path: Path) -> None:
        self._file: TextIO = path.open("w")
        self._tasks = [asyncio.create_task(self._record(node)) for node in nodes]
        self.count = 0

    async def _record(self, node: RedisNode) -> None:
        while True:
            with suppress(OSError):
                await self._monitor(node)
            await asyncio.sleep(RECONNECT_S)

    async def _monitor(self, node: RedisNode) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port, limit=2**24)
        try:
            writer.write(b"MONITOR\r\n")
            while line := await reader.readline():
                if (grant := GRANT.match(line)) is not None:
                    at, key, fence = grant.groups()
                    self._write(node.name, key.decode(), int(fence), float(at))
        finally:
            writer.close()

    def _write(self, node: str, key: str, fence: int, at: float) -> None:
        self.count += 1
        line = {"number": self.count, "node": node, "key": key, "fence": fence, "at": at}
        self._file.write(orjson.dumps(line).decode() + "\n")

    async def close(self) -> None:
        """Stop recording."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._file.close()
