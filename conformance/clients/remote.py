"""A client in a process of its own: what it is told to do, and what it tells."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bench.launching import PROJECT
from conformance.apps import App

TOLD_WITHIN_S = 20.0
LONGEST_LINE = 2**20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A client library, and the command that runs it."""

    name: str
    command: tuple[str, ...]


KINDS = (
    Kind("graphql-ws", ("node", "graphql_ws.js")),
    Kind("@urql/core", ("node", "urql.js")),
    Kind("@apollo/client", ("node", "apollo.js")),
    Kind("gql (Python)", (sys.executable, "-m", "conformance.clients.gql_client")),
)


@dataclass(slots=True)
class Remote:
    """A running client; answers stand in a queue for each act."""

    process: asyncio.subprocess.Process
    told: dict[int, asyncio.Queue[Json]] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    async def ask(self, query: str, **variables: Any) -> Json:
        """What the client says of a query or a mutation. Errors: TimeoutError."""
        return await self.next(await self._act("ask", query, variables))

    async def subscribe(self, query: str, **variables: Any) -> int:
        """Begin a subscription; its number."""
        return await self._act("subscribe", query, variables)

    async def unsubscribe(self, number: int) -> None:
        """End it."""
        await self._write({"id": number, "act": "unsubscribe"})

    async def next(self, number: int) -> Json:
        """What comes next of an act. Errors: TimeoutError."""
        return await asyncio.wait_for(self.told[number].get(), TOLD_WITHIN_S)

    async def _act(self, act: str, query: str, variables: Mapping[str, Any]) -> int:
        number = next(self._numbers)
        self.told[number] = asyncio.Queue()
        await self._write({"id": number, "act": act, "query": query, "variables": variables})
        return number

    async def _write(self, message: Json) -> None:
        assert self.process.stdin is not None  # noqa: S101
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def read(self) -> None:
        """Sort what the client tells by the act it is about, until it ends."""
        assert self.process.stdout is not None  # noqa: S101
        async for line in self.process.stdout:
            message: Json = json.loads(line)
            self.told[message.pop("id")].put_nowait(message)


@asynccontextmanager
async def remote(kind: Kind, app: App, token: str, home: Path, log: Path) -> AsyncIterator[Remote]:
    """A client of the app with this token (an empty one: nobody's), ended on leaving."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "URL": app.url,
        "SOCKET_URL": app.socket_url,
        "TOKEN": token,
    }
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *kind.command,
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=LONGEST_LINE,
        )
    client = Remote(process)
    reading = asyncio.create_task(client.read())
    try:
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
