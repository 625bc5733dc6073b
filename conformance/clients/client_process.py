"""A client in a child process: the commands that it receives, and its responses."""

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

from bench.app_process import PROJECT
from conformance.apps import ConformanceApp

RESPONSE_TIMEOUT_S = 60.0  # the first response of a client includes its start
MAX_LINE_BYTES = 2**20

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClientLibrary:
    """A client library, and the command that runs it."""

    name: str
    command: tuple[str, ...]


CLIENT_LIBRARIES = (
    ClientLibrary("graphql-ws", ("node", "graphql_ws.js")),
    ClientLibrary("@urql/core", ("node", "urql.js")),
    ClientLibrary("@apollo/client", ("node", "apollo.js")),
    ClientLibrary("gql (Python)", (sys.executable, "-m", "conformance.clients.gql_client")),
)


@dataclass(slots=True)
class RemoteClient:
    """A running client with a queue of responses for each command."""

    process: asyncio.subprocess.Process
    responses: dict[int, asyncio.Queue[Json]] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)

    async def execute(self, document: str, **variables: Any) -> Json:
        """Execute a query or mutation and return the client's response; raises TimeoutError."""
        return await self.next(await self._start("execute", document, variables))

    async def subscribe(self, document: str, **variables: Any) -> int:
        """Start a subscription and return its number."""
        return await self._start("subscribe", document, variables)

    async def unsubscribe(self, number: int) -> None:
        """End a subscription."""
        await self._write({"id": number, "command": "unsubscribe"})

    async def next(self, number: int) -> Json:
        """Wait for the next response to a command; raises TimeoutError."""
        return await asyncio.wait_for(self.responses[number].get(), RESPONSE_TIMEOUT_S)

    async def _start(self, command: str, document: str, variables: Mapping[str, Any]) -> int:
        number = next(self._numbers)
        self.responses[number] = asyncio.Queue()
        message = {"id": number, "command": command, "query": document, "variables": variables}
        await self._write(message)
        return number

    async def _write(self, message: Json) -> None:
        assert self.process.stdin is not None  # noqa: S101
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def read(self) -> None:
        """Put each response into the queue of its command, until the client ends."""
        assert self.process.stdout is not None  # noqa: S101
        async for line in self.process.stdout:
            message: Json = json.loads(line)
            self.responses[message.pop("id")].put_nowait(message)


@asynccontextmanager
async def start_client(
    library: ClientLibrary, app: ConformanceApp, token: str, home: Path, log: Path
) -> AsyncIterator[RemoteClient]:
    """Run a client with this token; without a token it is anonymous."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "URL": app.url,
        "SOCKET_URL": app.socket_url,
        "TOKEN": token,
    }
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *library.command,
            cwd=home,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            limit=MAX_LINE_BYTES,
        )
    client = RemoteClient(process)
    read_task = asyncio.create_task(client.read())
    try:
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await read_task
