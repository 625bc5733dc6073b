"""A GraphQL client over HTTP, and the errors that the simulation handles."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import orjson

from slotlock.simulation.model.plan import (
    CONNECTION_DROPPED,
    SERVER_ERROR,
    NoResponseError,
    SimulationError,
)

# Users share connections. More would overflow the server's accept queue (2,048 connections).
MAX_CONNECTIONS = 2_000
# Longer than the longest wait for a lock (20 s) and the server's own database timeouts.
RESPONSE_TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 30.0
# Many servers close an idle connection after 5 s, possibly at the moment when it is used.
IDLE_TIMEOUT_S = 3.0
RETRY_FOR_S = 30.0
RETRY_DELAY_S = 0.1

RATE_LIMITED_MESSAGE = "the server limits rates; start it with SLOTLOCK_RATE_LIMITS=off"


class GraphQLClient:
    """A client of one server that counts its requests."""

    def __init__(self, url: str, http: aiohttp.ClientSession) -> None:
        self.url = url
        self.http = http
        self.request_count = 0
        self._endpoint_url = url + "/graphql"

    async def query(self, document: str, token: str | None = None, **variables: Any) -> Any:
        """Send a document with one root field and return its value.

        Raises:
            NoResponseError: The connection or the server failed.
            SimulationError: The server rejects the document.
        """
        return self._root_field(*await self.post(document, token, variables))

    async def post(
        self, document: str, token: str | None, variables: Mapping[str, Any]
    ) -> tuple[int, Any]:
        """Send a document; return the HTTP status and the JSON of the response, if it is JSON.

        Raises:
            NoResponseError: The connection failed.
        """
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        body = orjson.dumps({"query": document, "variables": variables})
        self.request_count += 1
        try:
            async with self.http.post(self._endpoint_url, data=body, headers=headers) as response:
                status, content = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoResponseError(CONNECTION_DROPPED, connection_error_reason(error)) from None
        with contextlib.suppress(orjson.JSONDecodeError):
            return status, orjson.loads(content)
        return status, None

    async def query_with_retry(
        self, document: str, token: str | None = None, **variables: Any
    ) -> Any:
        """Send a document like `query`, with retries for 30 s. It must be safe to repeat."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETRY_FOR_S
        while True:
            try:
                return await self.query(document, token, **variables)
            except NoResponseError:
                if loop.time() > deadline:
                    raise
            await asyncio.sleep(RETRY_DELAY_S)

    async def paginate(
        self, document: str, token: str, **variables: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the items of all pages of a list, as `query_with_retry` loads them."""
        after = None
        while True:
            page = await self.query_with_retry(document, token, after=after, **variables)
            for node in page["nodes"]:
                yield node
            if not page["pageInfo"]["hasNextPage"]:
                return
            after = page["pageInfo"]["endCursor"]

    def _root_field(self, status: int, result: Any) -> Any:
        if status >= 500:  # an overloaded server sheds requests with a code of the rate limits
            raise NoResponseError(SERVER_ERROR, f"HTTP {status}")
        if isinstance(result, dict) and result.get("errors"):
            raise to_error(result["errors"])
        if status == 429:
            raise SimulationError(RATE_LIMITED_MESSAGE)
        data = result.get("data") if isinstance(result, dict) else None
        if not isinstance(data, dict) or len(data) != 1:
            raise SimulationError(f"{self._endpoint_url} does not speak GraphQL: HTTP {status}")
        (field,) = data.values()
        return field


def connection_error_reason(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system if it gives any."""
    reason = getattr(error, "os_error", error)
    return str(reason) or type(reason).__name__


def to_error(errors: Sequence[Any]) -> Exception:
    """Convert the errors of a GraphQL response to an exception."""
    first = errors[0]
    code, message = first.get("extensions", {}).get("code"), first.get("message", "")
    match code:
        case "INTERNAL" | "OUTCOME_UNKNOWN":  # it can be repeated with the same key
            return NoResponseError(SERVER_ERROR, message)
        case "RATE_LIMITED":
            return SimulationError(RATE_LIMITED_MESSAGE)
    return SimulationError(f"the server returned an error: {message} ({code})")


@contextlib.asynccontextmanager
async def open_http(max_connections: int) -> AsyncIterator[aiohttp.ClientSession]:
    """Open connections for clients, at most so many at once; 0 for any number."""
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=RESPONSE_TIMEOUT_S
    )
    connector = aiohttp.TCPConnector(
        limit=min(max_connections, MAX_CONNECTIONS), keepalive_timeout=IDLE_TIMEOUT_S
    )
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        yield http
