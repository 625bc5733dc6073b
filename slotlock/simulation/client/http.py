"""The server as the crowd knows it: GraphQL over HTTP, and what may go wrong on the way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import orjson

from slotlock.simulation.model.plan import NoResponseError, SimulationError

# Whoever has no connection of their own takes one that another person is done with. More at once
# would overflow the queue in which a server's connections wait to be accepted (2,048).
MAX_CONNECTIONS = 2_000
# Longer than anybody waits for their turn (20 s) and the server for its own databases.
RESPONSE_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 30.0
# Below the 5 s after which many servers close an idle connection, perhaps just as it is used.
IDLE_TIMEOUT_S = 3.0
RETRY_FOR_S = 30.0
RETRY_DELAY_S = 0.1

CONNECTION_DROPPED, SERVER_ERROR = "dropped connections", "server errors"
RATE_LIMITED_MESSAGE = "the server limits rates; start it with SLOTLOCK_RATE_LIMITS=off"


class GraphQLClient:
    """Where questions go; it counts the requests."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.request_count = 0
        self._endpoint_url = url + "/graphql"

    async def query(self, document: str, token: str | None = None, **variables: Any) -> Any:
        """The only field of the answer. Errors: UnreachedError, SimulationError."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        body = orjson.dumps({"query": document, "variables": variables})
        self.request_count += 1
        try:
            async with self.http.post(self._endpoint_url, data=body, headers=headers) as response:
                status, said = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoResponseError(CONNECTION_DROPPED, connection_error_reason(error)) from None
        return self._parse_response(status, said)

    async def query_with_retry(
        self, document: str, token: str | None = None, **variables: Any
    ) -> Any:
        """As `ask`, again and again for 30 s: for what may be asked twice without harm."""
        loop = asyncio.get_running_loop()
        until = loop.time() + RETRY_FOR_S
        while True:
            try:
                return await self.query(document, token, **variables)
            except NoResponseError:
                if loop.time() > until:
                    raise
            await asyncio.sleep(RETRY_DELAY_S)

    def _parse_response(self, status: int, body: bytes) -> Any:
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if isinstance(answer, dict) and answer.get("errors"):
            raise to_error(answer["errors"])
        if status == 429:
            raise SimulationError(RATE_LIMITED_MESSAGE)
        if status >= 500:
            raise NoResponseError(SERVER_ERROR, f"HTTP {status}")
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, dict) or len(data) != 1:
            raise SimulationError(f"{self._endpoint_url} does not speak GraphQL: HTTP {status}")
        (field,) = data.values()
        return field


def connection_error_reason(error: Exception) -> str:
    """Why there is no connection, in the system's own words where it has any."""
    reason = getattr(error, "os_error", error)
    return str(reason) or type(reason).__name__


class UnknownFieldError(SimulationError):
    """The server's schema has no such thing."""


def to_error(errors: Sequence[Any]) -> Exception:
    """What the errors of an answer come to: something to ask again after, or the end."""
    first = errors[0]
    code, message = first.get("extensions", {}).get("code"), first.get("message", "")
    match code:
        case "INTERNAL":
            return NoResponseError(SERVER_ERROR, message)
        case "RATE_LIMITED":
            return SimulationError(RATE_LIMITED_MESSAGE)
        case "GRAPHQL_VALIDATION_FAILED":
            return UnknownFieldError(f"the server does not know what is asked: {message}")
    return SimulationError(f"the server refuses to answer: {message} ({code})")


@contextlib.asynccontextmanager
async def open_client(url: str, max_connections: int) -> AsyncIterator[GraphQLClient]:
    """The server, asked over at most so many connections at once."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=RESPONSE_TIMEOUT_S
    )
    connector = aiohttp.TCPConnector(
        limit=min(max_connections, MAX_CONNECTIONS), keepalive_timeout=IDLE_TIMEOUT_S
    )
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield GraphQLClient(url, http)
