"""The server as the crowd knows it: GraphQL over HTTP, and what may go wrong on the way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import orjson

from slotlock.api.simulation.plan import SimulationError, UnreachedError

# Whoever has no connection of their own takes one that another person is done with. More at once
# would overflow the queue in which a server's connections wait to be accepted (2,048).
MOST_CONNECTIONS = 2_000
# Longer than anybody waits for their turn (20 s) and the server for its own databases.
ANSWERED_WITHIN_S = 60.0
CONNECTED_WITHIN_S = 30.0
# Below the 5 s after which many servers close an idle connection, perhaps just as it is used.
IDLE_S = 3.0
PATIENCE_S = 30.0
AGAIN_AFTER_S = 0.1

DROPPED, SERVER_ERROR = "dropped connections", "server errors"
LIMITED = "the server limits rates; start it with SLOTLOCK_RATE_LIMITS=off"


class Server:
    """Where questions go; it counts the requests."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.requests = 0
        self._address = url + "/graphql"

    async def ask(self, query: str, token: str | None = None, **variables: Any) -> Any:
        """The only field of the answer. Errors: UnreachedError, SimulationError."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        body = orjson.dumps({"query": query, "variables": variables})
        self.requests += 1
        try:
            async with self.http.post(self._address, data=body, headers=headers) as response:
                status, said = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachedError(DROPPED, reason_of(error)) from None
        return self._field(status, said)

    async def insist(self, query: str, token: str | None = None, **variables: Any) -> Any:
        """As `ask`, again and again for 30 s: for what may be asked twice without harm."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await self.ask(query, token, **variables)
            except UnreachedError:
                if loop.time() > until:
                    raise
            await asyncio.sleep(AGAIN_AFTER_S)

    def _field(self, status: int, said: bytes) -> Any:
        try:
            answer = orjson.loads(said)
        except orjson.JSONDecodeError:
            answer = None
        if isinstance(answer, dict) and answer.get("errors"):
            raise failure(answer["errors"])
        if status == 429:
            raise SimulationError(LIMITED)
        if status >= 500:
            raise UnreachedError(SERVER_ERROR, f"HTTP {status}")
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, dict) or len(data) != 1:
            raise SimulationError(f"{self._address} does not speak GraphQL: HTTP {status}")
        (field,) = data.values()
        return field


def reason_of(error: Exception) -> str:
    """Why there is no connection, in the system's own words where it has any."""
    reason = getattr(error, "os_error", error)
    return str(reason) or type(reason).__name__


class UnknownQuestionError(SimulationError):
    """The server's schema has no such thing."""


def failure(errors: Sequence[Any]) -> Exception:
    """What the errors of an answer come to: something to ask again after, or the end."""
    first = errors[0]
    code, message = first.get("extensions", {}).get("code"), first.get("message", "")
    match code:
        case "INTERNAL":
            return UnreachedError(SERVER_ERROR, message)
        case "RATE_LIMITED":
            return SimulationError(LIMITED)
        case "GRAPHQL_VALIDATION_FAILED":
            return UnknownQuestionError(f"the server does not know what is asked: {message}")
    return SimulationError(f"the server refuses to answer: {message} ({code})")


@contextlib.asynccontextmanager
async def server_at(url: str, connections: int) -> AsyncIterator[Server]:
    """The server, asked over at most so many connections at once."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECTED_WITHIN_S, sock_read=ANSWERED_WITHIN_S
    )
    connector = aiohttp.TCPConnector(
        limit=min(connections, MOST_CONNECTIONS), keepalive_timeout=IDLE_S
    )
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield Server(url, http)
