"""Clients learn only the id of an internal error, and the log has a line a second of them."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest
from bson import ObjectId
from pymongo.errors import NetworkTimeout

from slotlock.api.app_state import open_app_state
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.users.user import Role
from slotlock.graphql.context import UNKNOWN_CLIENT
from slotlock.graphql.core import errors
from slotlock.graphql.core.errors import OUTAGE_LOG_INTERVAL_S, OutageLog, log_error
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.services.live.availability_hub import AvailabilitySubscription
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import (
    AppProcess,
    app_environment,
    app_settings,
)
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
)
from tests.support.stores.empty_database import stored_database
from tests.support.stores.slots import insert_slot
from tests.support.stores.users import auth_for_database, sign_in_new_user

Client = GraphQLTestClient | WebSocketTestClient

DETAIL = "an internal detail"
SLOT = "query($id: ID!) { slot(id: $id) { id capacity } }"


def failing_states(error: Exception) -> object:
    """Replace `AvailabilitySubscription.states`: yield one state and fail."""
    states = AvailabilitySubscription.states

    async def first_state_only(
        self: AvailabilitySubscription,
    ) -> AsyncGenerator[Availability, None]:
        yield await anext(states(self))
        raise error

    return first_state_only


@pytest.mark.parametrize("error", [RuntimeError(DETAIL), ValueError(DETAIL), KeyError(DETAIL)])
async def test_an_error_in_a_subscription_is_masked(
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(AvailabilitySubscription, "states", failing_states(error))
    settings = app_settings(servers, "masked")
    async with AsyncExitStack() as stack:
        state = await stack.enter_async_context(open_app_state(settings, development=False))
        server = state.graphql_server
        slot_id = await insert_slot(server.services)
        payload = {"query": WATCH_AVAILABILITY, "variables": {"slots": [f"slot_{slot_id}"]}}
        request = await server.parse_request(payload, None, UNKNOWN_CLIENT)
        stream = execute_stream(*request, server.create_context(None))
        with caplog.at_level(logging.ERROR):
            first, last = [response async for response in stream]
    assert first.body["data"]
    (shown,) = last.body["errors"]
    assert shown["extensions"]["code"] == "INTERNAL"
    assert shown["path"] == ["slotAvailability"]
    assert DETAIL not in str(shown)
    assert shown["extensions"]["errorId"] in caplog.text
    assert DETAIL in caplog.text


@pytest.fixture(scope="module")
def failing_app(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app whose documents these tests may corrupt."""
    with app_variant(
        app_environment(servers, "failing"), tmp_path_factory.mktemp("failing")
    ) as app:
        yield app


@pytest.fixture
async def organizer(failing_app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(failing_app.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        token = await sign_in_new_user(auth, Role.ORGANIZER)
        yield GraphQLTestClient(http, failing_app.url, token)


@pytest.fixture(params=["http", "websocket"])
async def client(
    request: pytest.FixtureRequest, failing_app: AppProcess, organizer: GraphQLTestClient
) -> AsyncIterator[Client]:
    """Yield a client of the organizer, on each transport."""
    if request.param == "http":
        yield organizer
    else:
        async with open_websocket(failing_app, organizer.token) as websocket:
            yield websocket


def corrupt(app: AppProcess, collection: str, query: Json, update: Json) -> None:
    """Change documents so that reading them fails."""
    stored_database(app.environment["SLOTLOCK_MONGO_URL"])[collection].update_many(query, update)


async def internal_error(client: Client, query: str, **variables: object) -> Json:
    """Return the only error of a response, which is internal."""
    if isinstance(client, GraphQLTestClient):
        errors = (await client.send(query, **variables))["errors"]
    else:
        await client.subscribe("1", query, **variables)
        payload = (await client.receive())["payload"]
        errors = payload if isinstance(payload, list) else payload["errors"]
    error: Json
    (error,) = errors
    assert error["extensions"]["code"] == "INTERNAL"
    return error


async def test_an_error_in_a_field_is_masked_and_logged_under_its_id(
    failing_app: AppProcess, organizer: GraphQLTestClient, client: Client
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    corrupt(failing_app, "slots", {"_id": ObjectId(slot_id[-24:])}, {"$unset": {"capacity": 1}})
    error = await internal_error(client, SLOT, id=slot_id)
    assert error["path"] == ["slot"]
    assert "capacity" not in str(error)
    assert f"error {error['extensions']['errorId']}: a field failed" in failing_app.log
    assert "KeyError: 'capacity'" in failing_app.log


async def test_an_error_outside_the_fields_is_masked_and_logged_under_its_id(
    failing_app: AppProcess, client: Client
) -> None:
    corrupt(failing_app, "sessions", {}, {"$set": {"role": DETAIL}})
    error = await internal_error(client, "{ __typename }")
    assert "path" not in error
    assert DETAIL not in str(error)
    error_id = error["extensions"]["errorId"]
    (logged,) = (line for line in failing_app.log.splitlines() if error_id in line)
    assert "failed outside its" in logged
    assert DETAIL in failing_app.log.partition(logged)[2]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """Return the present time in seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Yield the clock of a log in which no outage was logged yet."""
    clock = Clock()
    monkeypatch.setattr(errors, "time", SimpleNamespace(monotonic=clock.monotonic))
    monkeypatch.setattr(errors, "_outage_log", OutageLog())
    return clock


def fail(count: int) -> set[str]:
    """Let requests fail in an outage. Return the error ids that their clients get."""
    return {log_error("a field failed", NetworkTimeout("no reply")) for _ in range(count)}


def test_an_outage_logs_one_line_a_second_with_the_count_of_the_others(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "slotlock.graphql")
    ids = [fail(1000)]
    clock.now += 0.99 * OUTAGE_LOG_INTERVAL_S
    ids[0] |= fail(5)
    for count in (3, 1):
        clock.now += OUTAGE_LOG_INTERVAL_S
        ids.append(fail(count))
    lines = [record.getMessage() for record in caplog.records]
    counts = [line.rpartition("(")[2] for line in lines]
    assert counts == [f"{count} more since the last line)" for count in (0, 1004, 2)]
    # Each client gets the id of a line that is in the log.
    assert [{line.split()[1].rstrip(":")} for line in lines] == ids


def test_an_error_that_is_no_outage_always_has_a_line_of_its_own(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fail(2)
    assert len({log_error("a field failed", KeyError("a bug")) for _ in range(3)}) == 3
    assert sum("a bug" in record.exc_text for record in caplog.records if record.exc_text) == 3
