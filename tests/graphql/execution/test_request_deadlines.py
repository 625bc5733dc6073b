"""A MongoDB that is silent: each operation has a response at its deadline, whatever it waits for.

The route to MongoDB holds requests, so that they have no reply. Each would last for seconds.
"""

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import orjson
import pytest
from starlette.types import ASGIApp, Message, Scope

from slotlock.api.app_state import AppState, open_app_state
from slotlock.api.exports.export_builder import ExportBuilder
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings
from slotlock.auth import export_links
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role
from slotlock.graphql.core import errors
from slotlock.graphql.transport.http import JSON, HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpRequest, HttpResponse
from slotlock.infrastructure import fair_scheduler, request_deadline
from slotlock.infrastructure.mongo.client import open_database
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import BOOK_SLOT, CREATE_SLOT, Json, slot_input
from tests.support.polling import eventually
from tests.support.stores.mongo_route import HoldingRoute, database_behind
from tests.support.stores.users import sign_in_new_user

# The driver leaves a socket open if it is cancelled while it connects.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

# A busy machine may hold up an earlier step for most of this time.
DEADLINE_S = 2.5
READ_SLOT = "query($slot: ID!) { slot(id: $slot) { title } }"
SIGN_IN = (
    'mutation { login(input: {email: "a@slotlock.test", password: "long enough"}) { __typename } }'
)


class SilentDeployment:
    """An app behind a route to MongoDB, with a member, an organizer and a slot."""

    def __init__(self, state: AppState, route: HoldingRoute, member: str, organizer: str) -> None:
        self.state = state
        self.route = route
        self.member = member
        self.organizer = organizer
        self.slot_id = ""
        self._endpoint = HttpEndpoint(
            state.graphql_server, max_body_bytes=64_000, development=False
        )

    async def fetch_calendar(self) -> int:
        """Request the published calendar, and return the status."""
        return await self.fetch(self.state.calendars, "GET", path="published.ics")

    async def fetch(
        self, endpoint: ASGIApp, method: str, body_delay_s: float = 0.0, **path_params: str
    ) -> int:
        """Send a request of the organizer, whose body is a file of one user; return the status."""
        authorization = f"Bearer {self.organizer}".encode()
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "query_string": b"",
            "headers": [(b"authorization", authorization), (b"content-type", b"text/csv")],
            "client": ("127.0.0.1", 1),
            "path_params": path_params,
        }
        body: Message = {"type": "http.request", "body": b"email,name\nz@slotlock.test,Zoe\n"}
        received, sent = [body], list[Message]()

        async def receive() -> Message:
            if received:
                await asyncio.sleep(body_delay_s)
                return received.pop()
            await asyncio.Event().wait()  # the client stays
            return body

        async def send(message: Message) -> None:
            sent.append(message)

        self.state.graphql_server.deadlines.begin()  # as before each of these endpoints
        await endpoint(scope, receive, send)
        return int(sent[0]["status"])

    async def fetch_all(self) -> list[int]:
        """Send a request to each HTTP endpoint that reads MongoDB at once; return the statuses."""
        state, export = self.state, f"slots/{self.slot_id}.csv"
        auth = state.graphql_server.auth
        claims = auth.tokens.verify("access", self.organizer, auth.now())
        organizer = Caller(claims.user_id, Role.ORGANIZER, claims.session_id, claims.expires_at)
        link = export_links.create(auth, organizer, export).token
        statuses = await asyncio.gather(
            self.fetch_calendar(),
            self.fetch(state.exports, "GET", path=export),
            self.fetch(state.export_links, "GET", token=link),
            self.fetch(state.user_import, "POST"),
            self.fetch(state.user_invitations, "POST"),
            self.fetch(state.personal_data, "GET"),
        )
        return list(statuses)

    async def send(self, document: str, token: str | None, **variables: object) -> tuple[int, Json]:
        """Send a request, and return the status and the body of the response."""
        headers = {"content-type": JSON}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        body = orjson.dumps({"query": document, "variables": variables})
        response = await self._endpoint.respond(HttpRequest(headers, JSON, body, "127.0.0.1"))
        assert isinstance(response, HttpResponse)
        return response.status, orjson.loads(response.body)


@pytest.fixture
async def deployment(servers: EmbeddedServers) -> AsyncIterator[SilentDeployment]:
    """Yield an app whose route to MongoDB holds nothing yet."""
    async with AsyncExitStack() as stack:
        opened = open_database(database_url(servers, "request_deadlines"))
        database = await stack.enter_async_context(opened)
        behind = database_behind(database, partial(HoldingRoute, is_held=lambda _: False))
        routed_client, _, route = await stack.enter_async_context(behind)
        address = await routed_client.address
        assert address is not None
        settings = Settings(
            mongo_url=f"mongodb://127.0.0.1:{address[1]}/{database.name}?directConnection=true",
            redis_url=servers.redis_url,
            secret_key=(SecretStr(SECRET),),
        )
        state = await stack.enter_async_context(open_app_state(settings, development=False))
        server = state.graphql_server
        organizer = await sign_in_new_user(server.auth, Role.ORGANIZER)
        member = await sign_in_new_user(server.auth, Role.MEMBER)
        deployment = SilentDeployment(state, route, member, organizer)
        _, created = await deployment.send(CREATE_SLOT, organizer, input=slot_input())
        deployment.slot_id = created["data"]["createSlot"]["id"]
        yield deployment
        route.is_held = lambda _: False
        for connection in route.connections:
            connection.cancel()  # which ends the commands that wait
    gc.collect()  # a socket that the driver left open is reported here


def shorten_deadlines(monkeypatch: pytest.MonkeyPatch, reserve_s: float = 0.0) -> None:
    """Let the steps of requests end soon, and the requests later by a reserve; log each failure."""
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", DEADLINE_S + reserve_s)
    monkeypatch.setattr(request_deadline, "RESERVE_S", reserve_s)
    monkeypatch.setattr(fair_scheduler, "TIME_AFTER_WAIT_S", 0.0)
    monkeypatch.setattr(errors, "OUTAGE_LOG_INTERVAL_S", 0.0)


def failure_of(response: tuple[int, Json], retry_after_ms: int = 1_000) -> tuple[int, str]:
    """Return the status and the code of a response with one error, which may be retried."""
    status, body = response
    (error,) = body["errors"]
    assert error["extensions"]["retryAfterMs"] == retry_after_ms
    return status, error["extensions"]["code"]


async def test_steps_without_a_reply_end_at_the_deadline_of_their_request(
    deployment: SilentDeployment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_deadlines(monkeypatch)
    slot, member = deployment.slot_id, deployment.member
    deployment.route.is_held = lambda message: b"slots" in message
    read, booking = await asyncio.gather(
        deployment.send(READ_SLOT, member, slot=slot), deployment.send(BOOK_SLOT, member, slot=slot)
    )
    assert failure_of(read) == (200, "INTERNAL")
    assert failure_of(booking) == (200, "OUTCOME_UNKNOWN")
    deployment.route.is_held = lambda message: b"sessions" in message
    unauthenticated = await deployment.send(BOOK_SLOT, member, slot=slot)
    assert failure_of(unauthenticated) == (503, "INTERNAL")
    assert caplog.text.count("RequestTimeoutError") == 3


async def cut_off(deployment: SilentDeployment, document: str, held: bytes) -> tuple[int, str]:
    """Cancel an operation while MongoDB has a command with a text, as a stop does."""
    deployment.route.held.clear()
    deployment.route.is_held = lambda message: held in message
    operation = asyncio.create_task(
        deployment.send(document, deployment.member, slot=deployment.slot_id)
    )
    await eventually(lambda: bool(deployment.route.held), "MongoDB has the command")
    operation.cancel()
    return failure_of(await operation, 2_000)


async def test_a_stop_says_that_a_mutation_may_have_happened_but_not_that_a_query_may(
    deployment: SilentDeployment,
) -> None:
    assert await cut_off(deployment, READ_SLOT, b"slots") == (503, "INTERNAL")
    assert await cut_off(deployment, BOOK_SLOT, b"slots") == (503, "OUTCOME_UNKNOWN")
    # It has not begun before its session is checked.
    assert await cut_off(deployment, BOOK_SLOT, b"sessions") == (503, "INTERNAL")


async def test_a_calendar_without_a_reply_ends_at_the_deadline(
    deployment: SilentDeployment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await deployment.fetch_calendar() == 200
    shorten_deadlines(monkeypatch, reserve_s=DEADLINE_S)
    deployment.route.is_held = lambda message: b"slots" in message
    assert await deployment.fetch_calendar() == 503
    timeouts = re.findall(r"timeoutMS: ([0-9.]+)ms", caplog.text)
    assert float(timeouts[0]) < DEADLINE_S * 1000


async def test_every_http_endpoint_without_a_reply_ends_at_the_deadline(
    deployment: SilentDeployment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await deployment.fetch_all() == [200] * 6
    shorten_deadlines(monkeypatch)
    deployment.route.is_held = lambda message: b"sessions" in message
    statuses = await deployment.fetch_all()
    assert statuses == [503] * len(statuses)
    assert caplog.text.count("RequestTimeoutError") == len(statuses)


async def test_the_time_of_a_slow_upload_and_of_an_export_does_not_count(
    deployment: SilentDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_deadlines(monkeypatch)
    state = deployment.state
    assert await deployment.fetch(state.user_import, "POST", body_delay_s=2 * DEADLINE_S) == 200
    build = ExportBuilder.build

    async def build_slowly(*arguments: Any, **options: Any) -> object:
        await asyncio.sleep(2 * DEADLINE_S)
        return await build(*arguments, **options)

    monkeypatch.setattr(ExportBuilder, "build", build_slowly)
    path = f"slots/{deployment.slot_id}.csv"
    assert await deployment.fetch(state.exports, "GET", path=path) == 200


async def test_a_late_step_gets_the_time_that_the_earlier_steps_left(
    deployment: SilentDeployment, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the step must fail before the request does.
    shorten_deadlines(monkeypatch, reserve_s=DEADLINE_S)
    deployment.route.is_held = lambda message: b"users" in message
    # Redis counts the attempt, and the search for the account follows.
    assert failure_of(await deployment.send(SIGN_IN, None)) == (200, "OUTCOME_UNKNOWN")
    timeouts = re.findall(r"timeoutMS: ([0-9.]+)ms", caplog.text)
    assert timeouts
    assert float(timeouts[0]) < DEADLINE_S * 1000
