"""Every request passes every check, however short its way through the server is."""

import asyncio
import contextlib
import functools
import gc
import json
import socket
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from pydantic import SecretStr
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from slotlock.api.app import build_app
from slotlock.api.middleware.load_shedding import ProcessLimit
from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.header_limit import HeaderLimitProtocol
from slotlock.api.server.timeouts import TimeoutConfig, TimeoutProtocol
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.graphql.context import Context
from slotlock.graphql.execution import documents, operation_executor
from slotlock.graphql.execution.compiled.operation import CompiledOperation
from slotlock.graphql.execution.documents import DocumentCache
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.transport import http, server
from slotlock.graphql.transport.http_messages import HttpPost
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.redis.rate_leases import RateLeases
from tests.support.apps.processes import SECRET, database_url
from tests.support.stores.users import auth_for_database, sign_in_new_user

# The functions that check every request, each called once.
CHECKS_OF_EVERY_REQUEST: list[tuple[Any, str]] = [
    (HeaderLimitProtocol, "on_headers_complete"),
    (ProcessLimit, "acquire"),
    (http, "negotiate"),
    (http, "check_declared_body"),
    (server, "verify_authorization"),
    (server, "has_too_many_values"),
    (DocumentCache, "resolve_operation"),
    (server, "user_to_charge"),
    (RateLeases, "charge"),
    (SessionRepository, "find_role"),
    (CompiledOperation, "execute"),
    (operation_executor, "record_metrics"),
    (ProcessLimit, "release"),
]
# The timer is checked for a new connection as well; a body as declared and as received.
CHECKS_MADE_TWICE: list[tuple[Any, str]] = [
    (TimeoutProtocol, "_update_part_timer"),
    (http, "check_body_size"),
]
# Their results for a header are the same each time, and a repeated header has passed them.
CHECKS_OF_HEADERS = ("on_headers_complete", "negotiate")
CHECKS_OF_NEW_DOCUMENTS: list[tuple[Any, str]] = [
    (documents, "exceeded_limit"),
    (documents, "field_merge_excess"),
    (documents, "validate"),
    (OperationRateLimits, "check_document"),
    (OperationRateLimits, "document_charge"),
]
QUERY = "{ me { id } }"


@pytest.fixture
async def address(servers: EmbeddedServers) -> AsyncIterator[tuple[str, int]]:
    """Yield the address of the app in this process, with rate limits."""
    settings = Settings(
        mongo_url=database_url(servers, "checks"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
    app = build_app(settings, development=False)
    running = uvicorn.Server(TimeoutConfig(app, 10, 10, 10, lifespan="on", log_config=None))
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


async def respond(address: tuple[str, int], request: bytes) -> bytes:
    """Send a request on a new connection; return the response."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    response = await reader.read()
    writer.close()
    return response


def count_calls(
    monkeypatch: pytest.MonkeyPatch, functions: list[tuple[Any, str]]
) -> "Counter[str]":
    """Count the calls of functions by their names."""
    calls: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def counted(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in functions:
        count(owner, name)
    return calls


async def test_a_request_with_a_known_document_passes_every_check_of_requests_once(
    address: tuple[str, int], token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = post(token, QUERY)
    await respond(address, request)
    functions = [*CHECKS_OF_EVERY_REQUEST, *CHECKS_MADE_TWICE, *CHECKS_OF_NEW_DOCUMENTS]
    calls = count_calls(monkeypatch, functions)
    head, _, body = (await respond(address, request)).partition(b"\r\n\r\n")
    assert json.loads(body)["data"]["me"]["id"]
    once = {name: 1 for _, name in CHECKS_OF_EVERY_REQUEST}
    assert calls == once | {name: 2 for _, name in CHECKS_MADE_TWICE}
    for header in SECURITY_HEADERS:
        assert head.count(b"\r\n%s: %s" % header) == 1


async def test_a_request_that_repeats_a_header_passes_every_other_check(
    address: tuple[str, int], token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(post(token, QUERY))
    await reader.readuntil(b"}}}")
    functions = [*CHECKS_OF_EVERY_REQUEST, *CHECKS_MADE_TWICE, *CHECKS_OF_NEW_DOCUMENTS]
    calls = count_calls(monkeypatch, functions)
    writer.write(post(token, QUERY))
    response = await reader.readuntil(b"}}}")
    writer.close()
    assert b'"errors"' not in response
    for header in SECURITY_HEADERS:
        assert response.count(b"\r\n%s: %s" % header) == 1
    expected = {name: 1 for _, name in CHECKS_OF_EVERY_REQUEST} | {"check_body_size": 2}
    for name in CHECKS_OF_HEADERS:
        del expected[name]
    assert calls == expected


async def test_a_new_document_passes_the_checks_of_documents_as_well(
    address: tuple[str, int], token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_calls(monkeypatch, [*CHECKS_OF_EVERY_REQUEST, *CHECKS_OF_NEW_DOCUMENTS])
    await respond(address, post(token, QUERY))
    expected = {name: 1 for _, name in [*CHECKS_OF_EVERY_REQUEST, *CHECKS_OF_NEW_DOCUMENTS]}
    assert calls == expected | {"user_to_charge": 2}


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
    await respond(address, request)
    with collected_garbage() as garbage:
        for _ in range(10):
            writer.write(request)
            await reader.readuntil(b"}}")
    writer.close()
    kinds = Counter(type(each).__name__ for each in garbage)
    types = (RequestResponseCycle, HttpPost, Context)
    assert not any(isinstance(each, types) for each in garbage), kinds
