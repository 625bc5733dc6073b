"""A MongoDB that is silent: each operation has a response at its deadline, whatever it waits for.

The route to MongoDB holds requests, so that they have no reply. Each would last for seconds.
"""

import asyncio
import gc
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import orjson
import pytest
from pydantic import SecretStr
from starlette.types import Message, Scope

from slotlock.api.app_state import AppState, open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.graphql.core import errors
from slotlock.graphql.transport.http import JSON, HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpPost
from slotlock.infrastructure import request_deadline
from slotlock.infrastructure.mongo.client import connect
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import BOOK_SLOT, CREATE_SLOT, Json, slot_input
from tests.support.stores.mongo_route import HoldingRoute, database_behind
from tests.support.stores.users import sign_in_new_user

# The driver leaves a socket open if it is cancelled while it connects.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

DEADLINE_S = 1.0
READ_SLOT = "query($slot: ID!) { slot(id: $slot) { title } }"
SIGN_IN = (
    'mutation { login(input: {email: "a@slotlock.test", password: "long enough"}) { __typename } }'
)


class SilentDeployment:
    """An app behind a route to MongoDB, with a member, an organizer and a slot."""

    def __init__(self, state: AppState, route: HoldingRoute, member: str) -> None:
        self.route = route
        self.member = member
        self.slot_id = ""
        self._endpoint = HttpEndpoint(
            state.graphql_server, max_body_bytes=64_000, development=False
        )
        self._calendars = state.calendars

    async def fetch_calendar(self) -> int:
        """Request the published calendar, and return the status."""
        scope: Scope = {
            "type": "http",
            "method": "GET",
            "headers": [],
            "client": ("127.0.0.1", 1),
            "path_params": {"path": "published.ics"},
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._calendars(scope, receive, send)
        return int(sent[0]["status"])

    async def send(self, document: str, token: str | None, **variables: object) -> tuple[int, Json]:
        """Send a request, and return the status and the body of the response."""
        headers = {"content-type": JSON}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        body = orjson.dumps({"query": document, "variables": variables})
        response = await self._endpoint.respond(HttpPost(headers, JSON, body, "127.0.0.1"))
        return response.status, orjson.loads(response.body)


@pytest.fixture
async def deployment(servers: EmbeddedServers) -> AsyncIterator[SilentDeployment]:
    """Yield an app whose route to MongoDB holds nothing yet."""
    client, database = connect(database_url(servers, "request_deadlines"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
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
        deployment = SilentDeployment(state, route, member)
        _, created = await deployment.send(CREATE_SLOT, organizer, input=slot_input())
        deployment.slot_id = created["data"]["createSlot"]["id"]
        yield deployment
        route.is_held = lambda _: False
        for connection in route.connections:
            connection.cancel()  # which ends the commands that wait
    gc.collect()  # a socket that the driver left open is reported here


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests end soon, and log each failure."""
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", DEADLINE_S)
    monkeypatch.setattr(request_deadline, "RESERVE_S", 0.0)
    monkeypatch.setattr(errors, "OUTAGE_LOG_INTERVAL_S", 0.0)


def failure_of(response: tuple[int, Json]) -> tuple[int, str]:
    """Return the status and the code of a response with one error, which may be retried."""
    status, body = response
    (error,) = body["errors"]
    assert error["extensions"]["retryAfterMs"] == 1_000
    return status, error["extensions"]["code"]


async def test_steps_without_a_reply_end_at_the_deadline_of_their_request(
    deployment: SilentDeployment, caplog: pytest.LogCaptureFixture
) -> None:
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


async def test_a_calendar_without_a_reply_ends_at_the_deadline(
    deployment: SilentDeployment,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_deadline, "RESERVE_S", 0.3)
    assert await deployment.fetch_calendar() == 200
    deployment.route.is_held = lambda message: b"slots" in message
    assert await deployment.fetch_calendar() == 503
    timeouts = re.findall(r"timeoutMS: ([0-9.]+)ms", caplog.text)
    assert float(timeouts[0]) < DEADLINE_S * 1000


async def test_a_late_step_gets_the_time_that_the_earlier_steps_left(
    deployment: SilentDeployment,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the step must fail before the request does.
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", 3 * DEADLINE_S)
    monkeypatch.setattr(request_deadline, "RESERVE_S", 2.3 * DEADLINE_S)
    deployment.route.is_held = lambda message: b"users" in message
    # Redis counts the attempt, and the search for the account follows.
    assert failure_of(await deployment.send(SIGN_IN, None)) == (200, "OUTCOME_UNKNOWN")
    timeouts = re.findall(r"timeoutMS: ([0-9.]+)ms", caplog.text)
    assert timeouts
    assert float(timeouts[0]) < DEADLINE_S * 1000
