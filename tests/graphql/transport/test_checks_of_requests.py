"""Every request passes every check, however short its way through the server is.

The front reads and serves usual requests itself. For each check, a request breaks it on a
connection that the front serves, and many requests get the same responses as over ASGI.
"""

import asyncio
import contextlib
import gc
import itertools
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from slotlock.api.app import build_app
from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.api.server.http_protocol import ServerConfig
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.graphql.context import Context
from slotlock.graphql.execution.operation_executor import REQUESTS
from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpRequest
from slotlock.infrastructure.telemetry import buffered_metrics
from tests.support.apps.processes import app_settings, database_url
from tests.support.stores.users import auth_for_database, sign_in_new_user

MAX_BODY = 40_000
MAX_WRITES = 15
QUERY = "{ me { id } }"


@pytest.fixture
async def address(servers: EmbeddedServers) -> AsyncIterator[tuple[str, int]]:
    """Yield the address of the app in this process, with rate limits."""
    # In that of other apps, the leases of their higher limits could use up those of this address.
    own = replace(servers, redis_url=f"{servers.redis_url}/4")
    settings = app_settings(
        own, "checks", redis_budget_ms=1000, max_body=MAX_BODY, rate_writes=MAX_WRITES
    )
    app = build_app(settings, development=False)
    running = uvicorn.Server(ServerConfig(app, 10, 10, 10, lifespan="on", log_config=None))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(running._serve([listener]))
        while not running.started:
            await asyncio.sleep(0.01)
        yield listener.getsockname()
        running.should_exit = True
        await serving


@pytest.fixture
async def token(servers: EmbeddedServers) -> str:
    """Return the token of a new user."""
    async with auth_for_database(database_url(servers, "checks")) as auth:
        return await sign_in_new_user(auth, Role.MEMBER)


def post(token: str, query: str) -> bytes:
    """Return a request with a token."""
    body = json.dumps({"query": query, "variables": {"unused": 1}}).encode()
    return (
        b"POST /graphql HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
        % (token.encode(), len(body), body)
    )


Responses = Callable[..., Awaitable[tuple[int, dict[str, Any]]]]


@pytest.fixture
async def direct(
    address: tuple[str, int], token: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Responses]:
    """Yield a function that sends a request on a connection which the front serves.

    It changes a usual request: parts of its header, or its body. No request may pass through ASGI.
    """
    reader, writer = await asyncio.open_connection(*address)

    async def send(
        query: str | None = QUERY, old: bytes = b"", new: bytes = b"", **parts: Any
    ) -> tuple[int, dict[str, Any]]:
        request = post(parts.pop("token", token), query or QUERY)
        if parts:
            request = with_body(request, json.dumps({"query": query} | parts).encode())
        writer.write(request.replace(old, new, 1) if old else request)
        return await read_response(reader)

    assert (await send())[1]["data"]["me"]["id"]

    async def fail(*_: object) -> None:
        raise AssertionError("a request passed through ASGI")

    monkeypatch.setattr(HttpEndpoint, "__call__", fail)
    yield send
    with contextlib.suppress(asyncio.IncompleteReadError):  # too large a body ends the connection
        assert "data" in (await send())[1]
    writer.close()


def with_body(request: bytes, body: bytes) -> bytes:
    """Return a request with another body."""
    head = request.partition(b"\r\nContent-Length")[0]
    return b"%s\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


async def read_response(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of the next response."""
    head = await reader.readuntil(b"\r\n\r\n")
    for header in SECURITY_HEADERS:
        assert head.count(b"\r\n%s: %s" % header) == 1
    length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


def code_of(body: dict[str, Any]) -> str:
    """Return the code of the only error."""
    (error,) = body["errors"]
    code: str = error["extensions"]["code"]
    return code


HOST, TYPE = b"Host: here", b"application/json"
BROKEN_REQUESTS: list[tuple[dict[str, Any], int, str]] = [
    ({"old": TYPE, "new": b"text/plain"}, 415, "BAD_USER_INPUT"),
    ({"old": TYPE, "new": TYPE + b"; charset=latin-1"}, 415, "BAD_USER_INPUT"),
    ({"old": HOST, "new": HOST + b"\r\nContent-Encoding: gzip"}, 415, "BAD_USER_INPUT"),
    ({"old": HOST, "new": HOST + b"\r\nAccept: image/png"}, 406, "BAD_USER_INPUT"),
    ({"old": b'{"query"', "new": b'["query"'}, 400, "BAD_USER_INPUT"),
    ({"query": None, "variables": {}}, 400, "BAD_USER_INPUT"),
    ({"variables": []}, 400, "BAD_USER_INPUT"),
    ({"variables": {"a": {"b": [1] * (MAX_VARIABLE_VALUES - 1)}}}, 400, "LIMIT_EXCEEDED"),
    ({"extensions": []}, 400, "BAD_USER_INPUT"),
    ({"operationName": "Other"}, 400, "BAD_USER_INPUT"),
    ({"query": "{ me { id "}, 200, "GRAPHQL_PARSE_FAILED"),
    ({"query": "{ nothing }"}, 200, "GRAPHQL_VALIDATION_FAILED"),
    ({"query": "query Q($id: ID!) { slot(id: $id) { id } }"}, 200, "BAD_USER_INPUT"),
    (
        {"query": "subscription { slotAvailability(slotIds: []) { version } }"},
        406,
        "BAD_USER_INPUT",
    ),
    ({"token": "nonsense"}, 200, "UNAUTHENTICATED"),
]


@pytest.mark.parametrize(("changed", "status", "code"), BROKEN_REQUESTS)
async def test_the_front_rejects_a_request_that_breaks_a_check(
    direct: Responses, changed: dict[str, Any], status: int, code: str
) -> None:
    found_status, body = await direct(**changed)
    assert (found_status, code_of(body)) == (status, code)


async def test_the_front_rejects_too_large_a_body_and_closes(direct: Responses) -> None:
    status, body = await direct(variables={"a": "x" * MAX_BODY})
    assert (status, code_of(body)) == (413, "LIMIT_EXCEEDED")


async def test_the_front_accepts_a_larger_body_of_an_organizer(
    direct: Responses, servers: EmbeddedServers
) -> None:
    async with auth_for_database(database_url(servers, "checks")) as auth:
        organizer = await sign_in_new_user(auth, Role.ORGANIZER)
    status, body = await direct(variables={"a": "x" * MAX_BODY}, token=organizer)
    assert status == 200
    assert body["data"]["me"]["id"]


async def test_the_front_rejects_an_ended_session_and_counts_each_response(
    direct: Responses, servers: EmbeddedServers
) -> None:
    async with auth_for_database(database_url(servers, "checks")) as auth:
        other = await sign_in_new_user(auth, Role.MEMBER)
    before = counted("logout", "ok"), counted("me", "UNAUTHENTICATED")
    assert (await direct("mutation { logout }", token=other))[1]["data"]["logout"]
    assert code_of((await direct(token=other))[1]) == "UNAUTHENTICATED"
    assert (counted("logout", "ok"), counted("me", "UNAUTHENTICATED")) == (
        before[0] + 1,
        before[1] + 1,
    )


async def test_the_front_refuses_more_operations_than_the_rate_of_a_user(
    direct: Responses,
) -> None:
    query = 'mutation { cancelBooking(bookingId: "none") { __typename } }'
    accepted = 0
    while (response := await direct(query))[0] == 200:
        assert "errors" not in response[1]
        accepted += 1
    status, body = response
    assert (status, code_of(body)) == (429, "RATE_LIMITED")
    # Time passes meanwhile, which permits some more.
    assert accepted >= MAX_WRITES, body


def counted(field: str, outcome: str) -> float:
    """Return how many root fields had this outcome."""
    buffered_metrics.flush()
    value: float = REQUESTS.labels(field, outcome)._value.get()
    return value


FIELDS = [
    b"",
    b"Accept: application/graphql-response+json\r\n",
    b"Accept: text/html\r\n",
    b"Accept: \r\n",
    b"Content-Type: application/json; charset=utf-8\r\n",
    b"Content-Type: text/plain\r\n",
    b"Authorization: Bearer x\r\n",
    b"User-Agent: \xe9\r\n",
]
BODIES = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b'{"query": "{ __typename }"}',
    b'{"query": "{ __typename }", "variables": {"a": [1]}}',
    b'{"query": "query A { __typename } query B { me { id } }", "operationName": "B"}',
    b'{"query": "query A { __typename } query B { me { id } }"}',
    b'{"query": "{ slots(first: 0) { nodes { id } } }"}',
    b'{"query": "{ slots(first: 1) { nodes { id startTime } pageInfo { endCursor } } }"}',
    b'{"query": "mutation { logout }"}',
    b'{"query": "{ a: me { id } b: __typename }"}',
]


async def respond(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes
) -> tuple[list[bytes], bytes]:
    """Return the status and the fields of a response without its date, and its body."""
    reader, writer = connection
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.startswith(b"date: ")]
    length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
    return sorted(lines), await reader.readexactly(length)


async def test_the_front_responds_as_the_server_does_over_asgi(address: tuple[str, int]) -> None:
    direct = await asyncio.open_connection(*address)
    parsed = await asyncio.open_connection(*address)
    for fields, body in itertools.product(FIELDS, BODIES):
        # Only the parser reads capitals in the value of the field `Connection`.
        responses = [
            await respond(
                connection,
                b"POST /graphql HTTP/1.1\r\nHost: here\r\nX-Request-Id: same\r\n%s"
                b"Connection: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (fields, value, len(body), body),
            )
            for connection, value in ((direct, b"keep-alive"), (parsed, b"Keep-Alive"))
        ]
        assert responses[0] == responses[1]
    direct[1].close()
    parsed[1].close()


@contextlib.contextmanager
def collected_garbage() -> Any:
    """Yield a list that contains, at the end, what only a collection could delete."""
    found: list[object] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_the_transport_leaves_no_garbage_for_a_collection(
    address: tuple[str, int], token: str
) -> None:
    reader, writer = await asyncio.open_connection(*address)
    request = post(token, "{ __typename }")
    with collected_garbage() as garbage:
        for _ in range(10):
            writer.write(request)
            await reader.readuntil(b"}}")
    writer.close()
    kinds = Counter(type(each).__name__ for each in garbage)
    types = (RequestResponseCycle, HttpRequest, Context)
    assert not any(isinstance(each, types) for each in garbage), kinds
