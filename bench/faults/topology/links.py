"""The links between processes, all of which pass through one proxy process."""

import asyncio
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bench.app_process import PROJECT, free_port
from bench.faults.topology.proxy import CUT, OPEN, SILENT
from bench.faults.topology.servers import CampaignError


@dataclass(frozen=True, slots=True)
class LinkState:
    """How a direction of a link is disturbed: nothing passes, or late, or slowly."""

    mode: str = OPEN
    delay_s: float = 0.0
    bytes_per_s: float = 0.0


HEALTHY = LinkState()
REFUSED = LinkState(CUT)
LOST = LinkState(SILENT)


class Links:
    """Opens ports in front of servers, and disturbs the links that lead through them."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._disturbed: set[tuple[str, str]] = set()
        self._naming: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the proxy."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bench.faults.topology.proxy",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            start_new_session=True,
        )

    async def open_port(self, target: str, server_port: int) -> int:
        """Return a port that leads to a server; raises CampaignError if no free one is found."""
        self.ports[target] = free_port()
        await self._execute({"listen": {target: (self.ports[target], server_port)}})
        return self.ports[target]

    async def name_process(self, pid: int, name: str) -> None:
        """Give the connections that a process opens the name of their source."""
        await self._execute({"processes": {pid: name}})

    def name_process_soon(self, pid: int, name: str) -> None:
        """Name a process that was launched just now, before it opens connections."""
        task = asyncio.create_task(self.name_process(pid, name))
        self._naming.add(task)
        task.add_done_callback(self._naming.discard)

    async def disturb(self, directions: Iterable[tuple[str, str]], state: LinkState) -> None:
        """Disturb these directions, each from a source to a target."""
        directions = list(directions)
        self._disturbed.update(directions)
        await self._execute({"links": [(*each, asdict(state)) for each in directions]})

    async def separate(
        self, ones: Iterable[str], others: Iterable[str], state: LinkState = LOST
    ) -> None:
        """Disturb both directions between each of these and each of those."""
        others = list(others)
        pairs = [(one, other) for one in ones for other in others if one != other]
        await self.disturb([*pairs, *((other, one) for one, other in pairs)], state)

    async def heal(self) -> None:
        """Make every link healthy."""
        disturbed, self._disturbed = self._disturbed, set()
        await self._execute({"links": [(*each, asdict(HEALTHY)) for each in disturbed]})

    async def _execute(self, command: dict[str, Any]) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise CampaignError("the proxy does not run")
        async with self._lock:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            if await process.stdout.readline() != b"ok\n":
                raise CampaignError("the proxy ended")

    async def stop(self) -> None:
        """End the proxy with all its connections."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
