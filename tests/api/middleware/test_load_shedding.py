"""Beyond its limits the app rejects requests at once, and goes on serving the accepted ones."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from redis import Redis
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.deployment import app_variant, lock_key
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import GraphQLTestClient, Json, open_websocket
from tests.support.stores.users import auth_for_database, sign_in_new_user

MAX_REQUESTS, MAX_SOCKETS, STREAMS_PER_USER, STREAMS_PER_ADDRESS = 4, 8, 2, 5
MAX_BODY = 2_000
ORIGIN = "https://app.example.org"
EVENT_STREAM = {"Accept": "text/event-stream"}
SUBSCRIPTION = {"query": "subscription { myBookings { at } }"}
QUERY = {"query": "{ __typename }"}
BOOK_AND_WAIT = """mutation Book($slot: ID!) {
  bookSlot(input: {slotId: $slot, waitMs: 20000}) { __typename }
}"""


@pytest.fixture
def small_app(servers: EmbeddedServers, log_dir: Path) -> Iterator[AppProcess]:
    """Yield an app with low limits. Each test has its own, since permits return with a delay."""
    settings = {
        **app_environment(servers, "small"),
        "SLOTLOCK_MAX_REQUESTS": str(MAX_REQUESTS),
        "SLOTLOCK_MAX_SOCKETS": str(MAX_SOCKETS),
        "SLOTLOCK_STREAMS_PER_USER": str(STREAMS_PER_USER),
        "SLOTLOCK_STREAMS_PER_ADDRESS": str(STREAMS_PER_ADDRESS),
        "SLOTLOCK_MAX_BODY": str(MAX_BODY),
        "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
        "SLOTLOCK_ALLOWED_ORIGINS": ORIGIN,
    }
    with app_variant(settings, log_dir) as app:
        yield app


@pytest.fixture
async def tokens(small_app: AppProcess) -> list[str]:
    """Return tokens of new users."""
    async with auth_for_database(small_app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return [await sign_in_new_user(auth, Role.MEMBER) for _ in range(MAX_SOCKETS)]


def headers_of(token: str, address: str = "198.51.100.1") -> dict[str, str]:
    """Return the headers of a user at an address."""
    return {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}


async def query_status(app: AppProcess, http: httpx.AsyncClient) -> int:
    """Return the status of a small query."""
    return (await http.post(app.url + "/graphql", json=QUERY)).status_code


@asynccontextmanager
async def open_event_stream(
    http: httpx.AsyncClient, app: AppProcess, headers: dict[str, str]
) -> AsyncIterator[httpx.Response]:
    """Open a subscription over server-sent events."""
    url, headers = app.url + "/graphql", {**headers, **EVENT_STREAM}
    async with http.stream("POST", url, json=SUBSCRIPTION, headers=headers) as response:
        yield response


@asynccontextmanager
async def open_socket(app: AppProcess, address: str) -> AsyncIterator[ClientConnection]:
    """Open a socket without initializing it."""
    async with connect(
        app.websocket_url,
        subprotocols=[Subprotocol("graphql-transport-ws")],
        additional_headers={"X-Forwarded-For": address},
        proxy=None,
        open_timeout=30,
    ) as connection:
        yield connection


async def wait_for_room(app: AppProcess, address: str) -> None:
    """Wait until the app accepts a socket again; it may notice with a delay that others closed."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(InvalidStatus):
                async with open_socket(app, address):
                    return


@asynccontextmanager
async def incomplete_request(app: AppProcess) -> AsyncIterator[asyncio.StreamReader]:
    """Send a request with an incomplete body, and wait until the server has its header.

    Yields the reader of its response.
    """
    url = httpx.URL(app.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    )
    assert b"100" in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"{")
    await writer.drain()
    yield reader
    writer.transport.abort()


@asynccontextmanager
async def waiting_requests(
    app: AppProcess, http: httpx.AsyncClient, tokens: list[str]
) -> AsyncIterator[None]:
    """Keep a request of each user in progress: they wait for a lock that another process holds.

    A request is repeated while there is no room for it.
    """
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organizer = GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ADMIN))
    slot_id = (await organizer.create_slot())["id"]
    url, body = app.url + "/graphql", {"query": BOOK_AND_WAIT, "variables": {"slot": slot_id}}
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        assert redis.set(lock_key(slot_id), "another-process:1")

        async def book(token: str) -> None:
            while (await http.post(url, json=body, headers=headers_of(token))).status_code == 503:
                pass

        requests = [asyncio.create_task(book(token)) for token in tokens]
        yield
        redis.delete(lock_key(slot_id))
        await asyncio.gather(*requests)


async def test_incomplete_bodies_take_no_room_from_requests_and_the_oldest_is_rejected(
    small_app: AppProcess, http: httpx.AsyncClient
) -> None:
    async with AsyncExitStack() as stack:
        readers = [
            await stack.enter_async_context(incomplete_request(small_app))
            for _ in range(MAX_REQUESTS + 1)
        ]
        async with asyncio.timeout(20):
            assert b"503" in await readers[0].readline()
        assert await query_status(small_app, http) == 200


async def test_requests_beyond_the_limit_get_503_at_once_but_monitoring_does_not(
    small_app: AppProcess, http: httpx.AsyncClient, tokens: list[str]
) -> None:
    async def send_query() -> httpx.Response:
        url, headers = small_app.url + "/graphql", {"Origin": ORIGIN}
        return await http.post(url, json=QUERY, headers=headers)

    async with waiting_requests(small_app, http, tokens[:MAX_REQUESTS]):
        async with asyncio.timeout(20):
            while (rejected := await send_query()).status_code == 200:
                pass
        assert rejected.status_code == 503
        assert rejected.headers["retry-after"] == "2"
        assert rejected.headers["access-control-allow-origin"] == ORIGIN
        assert rejected.headers["x-content-type-options"] == "nosniff"
        assert rejected.json()["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
        for path in ("/healthz", "/readyz", "/metrics"):
            response = await http.get(small_app.url + path)
            assert response.status_code == 200
        assert 'slotlock_shed_requests_total{type="http"}' in response.text
    async with asyncio.timeout(20):
        while await query_status(small_app, http) != 200:
            await asyncio.sleep(0.02)


async def test_event_streams_count_as_sockets_and_not_as_requests(
    small_app: AppProcess, http: httpx.AsyncClient, tokens: list[str]
) -> None:
    async with AsyncExitStack() as stack:
        for number, token in enumerate(tokens):
            headers = headers_of(token, f"203.0.113.{number}")
            response = await stack.enter_async_context(open_event_stream(http, small_app, headers))
            assert response.status_code == 200
        assert await query_status(small_app, http) == 200
        rejected = await http.post(
            small_app.url + "/graphql",
            json=SUBSCRIPTION,
            headers={**headers_of(tokens[0], "203.0.113.99"), **EVENT_STREAM},
        )
        assert rejected.status_code == 503
        assert rejected.headers["retry-after"] == "2"
        assert rejected.json()["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
        with pytest.raises(InvalidStatus):
            await stack.enter_async_context(open_socket(small_app, "203.0.113.99"))
    await wait_for_room(small_app, "203.0.113.99")


async def test_sockets_beyond_the_limit_are_rejected_at_the_handshake_until_one_closes(
    small_app: AppProcess,
) -> None:
    async with AsyncExitStack() as stack:
        for number in range(MAX_SOCKETS):
            await stack.enter_async_context(open_socket(small_app, f"198.51.100.{number}"))
        with pytest.raises(InvalidStatus) as rejected:
            await stack.enter_async_context(open_socket(small_app, "198.51.100.99"))
        assert rejected.value.response.status_code == 503
        assert rejected.value.response.headers["retry-after"] == "2"
    await wait_for_room(small_app, "198.51.100.99")


async def test_an_address_may_open_a_limited_number_of_streams_however_they_end(
    small_app: AppProcess, http: httpx.AsyncClient, tokens: list[str]
) -> None:
    address = "192.0.2.1"
    headers = headers_of(tokens[0], address)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_event_stream(http, small_app, headers))
        for _ in range(STREAMS_PER_ADDRESS - 1):
            connection = await stack.enter_async_context(open_socket(small_app, address))
        with pytest.raises(InvalidStatus) as rejected:
            await stack.enter_async_context(open_socket(small_app, address))
        assert rejected.value.response.status_code == 429
        assert "retry-after" in rejected.value.response.headers
        async with open_socket(small_app, "192.0.2.2"):
            pass
        connection.transport.abort()
        await wait_for_room(small_app, address)


async def initialize(connection: ClientConnection, token: str) -> int | None:
    """Initialize a socket; return the code if the server closes it, None if it acknowledges."""
    payload = {"authorization": f"Bearer {token}"}
    try:
        await connection.send(json.dumps({"type": "connection_init", "payload": payload}))
        async with asyncio.timeout(20):
            await connection.recv()
    except ConnectionClosed:
        return connection.close_code
    return None


async def test_a_user_may_open_a_limited_number_of_sockets_from_all_addresses_together(
    small_app: AppProcess, tokens: list[str]
) -> None:
    token, other_token = tokens[0], tokens[1]
    async with AsyncExitStack() as stack:
        for number in range(STREAMS_PER_USER):
            connection = await stack.enter_async_context(
                open_socket(small_app, f"192.0.2.{number}")
            )
            assert await initialize(connection, token) is None
        async with open_socket(small_app, "192.0.2.77") as connection:
            assert await initialize(connection, token) == 1013
        async with open_socket(small_app, "192.0.2.77") as connection:
            assert await initialize(connection, other_token) is None
    async with asyncio.timeout(20):
        while True:
            async with open_socket(small_app, "192.0.2.77") as connection:
                if await initialize(connection, token) is None:
                    break


async def test_an_event_stream_beyond_the_limit_of_its_user_reports_it_and_completes(
    small_app: AppProcess, http: httpx.AsyncClient, tokens: list[str]
) -> None:
    async with (
        open_websocket(small_app, tokens[0]),
        open_websocket(small_app, tokens[0]),
        open_event_stream(http, small_app, headers_of(tokens[0])) as response,
    ):
        lines = [line async for line in response.aiter_lines()]
    assert lines[0] == "event: next"
    result: Json = json.loads(lines[1].removeprefix("data: "))
    assert result["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
    assert "event: complete" in lines


async def test_requests_and_messages_may_be_as_large_as_the_setting_allows(
    small_app: AppProcess, http: httpx.AsyncClient
) -> None:
    async def status_of_size(size: int) -> int:
        body, headers = json.dumps(QUERY).encode().ljust(size), {"Content-Type": "application/json"}
        url = small_app.url + "/graphql"
        return (await http.post(url, content=body, headers=headers)).status_code

    assert [await status_of_size(MAX_BODY), await status_of_size(MAX_BODY + 1)] == [200, 413]
    init = json.dumps({"type": "connection_init"})
    async with open_socket(small_app, "192.0.2.88") as connection:
        await connection.send(init.ljust(MAX_BODY))
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}
        await connection.send(init.ljust(MAX_BODY + 1))
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert connection.close_code == 1009
