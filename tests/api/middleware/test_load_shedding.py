"""Past its limits the app says so at once, and goes on for everybody who is being served."""

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

REQUESTS, SOCKETS, A_PERSON, AN_ADDRESS = 4, 8, 2, 5
A_BODY = 2_000
EVENTS = {"Accept": "text/event-stream"}
NEWS = {"query": "subscription { myBookings { at } }"}
BOOK_PATIENTLY = """mutation Book($slot: ID!) {
  bookSlot(input: {slotId: $slot, waitMs: 20000}) { __typename }
}"""
NAME = {"query": "{ __typename }"}


@pytest.fixture
def small(servers: EmbeddedServers, log_dir: Path) -> Iterator[AppProcess]:
    """An app with little room, all of it free: a test's own, since what ended leaves it later."""
    settings = {
        **app_environment(servers, "small"),
        "SLOTLOCK_MAX_REQUESTS": str(REQUESTS),
        "SLOTLOCK_MAX_SOCKETS": str(SOCKETS),
        "SLOTLOCK_STREAMS_PER_USER": str(A_PERSON),
        "SLOTLOCK_STREAMS_PER_ADDRESS": str(AN_ADDRESS),
        "SLOTLOCK_MAX_BODY": str(A_BODY),
        "SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1",
        "SLOTLOCK_ALLOWED_ORIGINS": "https://app.example.org",
    }
    with app_variant(settings, log_dir) as app:
        yield app


@pytest.fixture
async def people(small: AppProcess) -> list[str]:
    """Tokens of people who were not here before."""
    async with auth_for_database(small.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return [await sign_in_new_user(auth, Role.MEMBER) for _ in range(SOCKETS)]


def bearing(token: str, address: str = "198.51.100.1") -> dict[str, str]:
    """Who asks and from where."""
    return {"Authorization": f"Bearer {token}", "X-Forwarded-For": address}


@asynccontextmanager
async def listening(
    http: httpx.AsyncClient, app: AppProcess, headers: dict[str, str]
) -> AsyncIterator[httpx.Response]:
    """An event stream that is open."""
    url = app.url + "/graphql"
    async with http.stream("POST", url, json=NEWS, headers={**headers, **EVENTS}) as response:
        yield response


@asynccontextmanager
async def opened(app: AppProcess, address: str) -> AsyncIterator[ClientConnection]:
    """A socket on which nothing was said yet."""
    async with connect(
        app.websocket_url,
        subprotocols=[Subprotocol("graphql-transport-ws")],
        additional_headers={"X-Forwarded-For": address},
        proxy=None,
    ) as connection:
        yield connection


async def once_there_is_room(app: AppProcess, address: str) -> None:
    """What was open is gone; it may take the app a moment to hear of it."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(InvalidStatus):
                async with opened(app, address):
                    return


@asynccontextmanager
async def half_asked(app: AppProcess) -> AsyncIterator[asyncio.StreamReader]:
    """A request whose body is still to come, and its answer."""
    url = httpx.URL(app.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    await writer.drain()
    yield reader
    writer.transport.abort()


@asynccontextmanager
async def waiting(
    app: AppProcess, http: httpx.AsyncClient, people: list[str]
) -> AsyncIterator[None]:
    """A request of each of them that is under way: it waits for a lock that others keep."""
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organiser = GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ADMIN))
    slot_id = (await organiser.create_slot())["id"]
    lock = lock_key(slot_id)
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        assert redis.set(lock, "somebody-else:1")
        body = {"query": BOOK_PATIENTLY, "variables": {"slot": slot_id}}
        asked = [
            asyncio.create_task(http.post(app.url + "/graphql", json=body, headers=bearing(token)))
            for token in people
        ]
        yield
        redis.delete(lock)
        await asyncio.gather(*asked)


async def test_bodies_that_do_not_come_take_no_place_from_requests_and_the_eldest_are_given_up(
    small: AppProcess, http: httpx.AsyncClient
) -> None:
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(half_asked(small)) for _ in range(REQUESTS + 1)]
        async with asyncio.timeout(20):
            assert b"503" in await readers[0].readline()
        assert (await http.post(small.url + "/graphql", json=NAME)).status_code == 200


async def test_when_too_much_is_under_way_the_next_is_told_503_at_once_and_machines_are_answered(
    small: AppProcess, http: httpx.AsyncClient, people: list[str]
) -> None:
    async with waiting(small, http, people[:REQUESTS]):
        origin = {"Origin": "https://app.example.org"}

        async def ask() -> httpx.Response:
            return await http.post(small.url + "/graphql", json=NAME, headers=origin)

        async with asyncio.timeout(20):
            while (refused := await ask()).status_code == 200:
                pass
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "2"
        assert refused.headers["access-control-allow-origin"] == "https://app.example.org"
        assert refused.headers["x-content-type-options"] == "nosniff"
        assert refused.json()["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
        for path in ("/healthz", "/readyz", "/metrics"):
            told = await http.get(small.url + path)
            assert told.status_code == 200
        assert 'slotlock_shed_requests_total{type="http"}' in told.text

    async def asked() -> int:
        return (await http.post(small.url + "/graphql", json=NAME)).status_code

    async with asyncio.timeout(20):
        while await asked() != 200:
            await asyncio.sleep(0.02)


async def test_event_streams_take_the_room_of_sockets_and_leave_that_of_requests(
    small: AppProcess, http: httpx.AsyncClient, people: list[str]
) -> None:
    async with AsyncExitStack() as stack:
        for number, token in enumerate(people):
            theirs = bearing(token, f"203.0.113.{number}")
            response = await stack.enter_async_context(listening(http, small, theirs))
            assert response.status_code == 200
        assert (await http.post(small.url + "/graphql", json=NAME)).status_code == 200
        further = bearing(people[0], "203.0.113.99")
        refused = await http.post(small.url + "/graphql", json=NEWS, headers={**further, **EVENTS})
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "2"
        assert refused.json()["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
        with pytest.raises(InvalidStatus):
            await stack.enter_async_context(opened(small, "203.0.113.99"))
    await once_there_is_room(small, "203.0.113.99")


async def test_further_sockets_are_refused_at_the_handshake_until_one_ends(
    small: AppProcess,
) -> None:
    async with AsyncExitStack() as stack:
        for number in range(SOCKETS):
            await stack.enter_async_context(opened(small, f"198.51.100.{number}"))
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(opened(small, "198.51.100.99"))
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["retry-after"] == "2"
    await once_there_is_room(small, "198.51.100.99")


async def test_an_address_has_so_many_sockets_and_streams_however_they_end(
    small: AppProcess, http: httpx.AsyncClient, people: list[str]
) -> None:
    here = "192.0.2.1"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(listening(http, small, bearing(people[0], here)))
        for _ in range(AN_ADDRESS - 1):
            connection = await stack.enter_async_context(opened(small, here))
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(opened(small, here))
        assert refused.value.response.status_code == 429
        assert "retry-after" in refused.value.response.headers
        async with opened(small, "192.0.2.2"):
            pass
        connection.transport.abort()
        await once_there_is_room(small, here)


async def closed_with(connection: ClientConnection, token: str) -> int | None:
    """What the server says to a person: the code it closes with, None when it acknowledges."""
    payload = f'{{"authorization": "Bearer {token}"}}'
    try:
        await connection.send(f'{{"type": "connection_init", "payload": {payload}}}')
        async with asyncio.timeout(20):
            await connection.recv()
    except ConnectionClosed:
        return connection.close_code
    return None


async def test_a_person_has_so_many_sockets_wherever_they_are(
    small: AppProcess, people: list[str]
) -> None:
    token, other = people[0], people[1]
    async with AsyncExitStack() as stack:
        for number in range(A_PERSON):
            connection = await stack.enter_async_context(opened(small, f"192.0.2.{number}"))
            assert await closed_with(connection, token) is None
        async with opened(small, "192.0.2.77") as further:
            assert await closed_with(further, token) == 1013
        async with opened(small, "192.0.2.77") as theirs:
            assert await closed_with(theirs, other) is None
    async with asyncio.timeout(20):
        while True:
            async with opened(small, "192.0.2.77") as again:
                if await closed_with(again, token) is None:
                    break


async def test_a_stream_too_many_of_a_person_is_told_so_and_complete(
    small: AppProcess, http: httpx.AsyncClient, people: list[str]
) -> None:
    async with (
        open_websocket(small, people[0]),
        open_websocket(small, people[0]),
        listening(http, small, bearing(people[0])) as response,
    ):
        lines = [line async for line in response.aiter_lines()]
    assert lines[0] == "event: next"
    told: Json = httpx.Response(200, text=lines[1].removeprefix("data: ")).json()
    assert told["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
    assert "event: complete" in lines


async def test_a_request_and_a_message_have_as_many_bytes_as_is_set(
    small: AppProcess, http: httpx.AsyncClient
) -> None:
    async def asked(size: int) -> int:
        body = json.dumps(NAME).encode().ljust(size)
        headers = {"Content-Type": "application/json"}
        return (await http.post(small.url + "/graphql", content=body, headers=headers)).status_code

    assert [await asked(A_BODY), await asked(A_BODY + 1)] == [200, 413]
    init = json.dumps({"type": "connection_init"})
    async with opened(small, "192.0.2.88") as connection:
        await connection.send(init.ljust(A_BODY))
        assert json.loads(await connection.recv()) == {"type": "connection_ack"}
        await connection.send(init.ljust(A_BODY + 1))
        with pytest.raises(ConnectionClosed):
            await connection.recv()
        assert connection.close_code == 1009
