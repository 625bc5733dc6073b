"""What fails on our side is told by an id that the log knows, and by nothing else."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing

import pytest
from bson import ObjectId
from pydantic import SecretStr
from pymongo import MongoClient

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.users.user import Role
from slotlock.graphql.context import UNKNOWN_CLIENT
from slotlock.graphql.execution.executor import execute_stream
from slotlock.graphql.transport.server import GraphQLServer
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.services.live.availability import AvailabilitySubscription
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import SECRET, AppProcess, app_environment, database_url
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
)
from tests.support.domain.builders import build_slot
from tests.support.stores.users import auth_for_database, sign_in_new_user

DETAIL = "a detail of ours"
SLOT = "query($id: ID!) { slot(id: $id) { id } }"


def broken(error: Exception) -> object:
    """A source of states that fails after the first."""

    async def states(self: AvailabilitySubscription) -> AsyncGenerator[Availability, None]:
        yield await anext(told(self))
        raise error

    told = AvailabilitySubscription.states
    return states


@pytest.mark.parametrize("error", [RuntimeError(DETAIL), ValueError(DETAIL), KeyError(DETAIL)])
async def test_a_source_of_events_that_fails_is_masked(
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(AvailabilitySubscription, "states", broken(error))
    settings = Settings(
        mongo_url=database_url(servers, "masked"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
    async with AsyncExitStack() as closing:
        rooms = await closing.enter_async_context(open_app_state(settings, development=False))
        conversation: GraphQLServer = rooms.graphql_server
        slot_id = new_slot_id()
        assert check_written(
            await conversation.services.slot_writer.commit(
                ChangeSet((), new_slots=(build_slot(5, id=slot_id),))
            )
        )
        sent = {"query": WATCH_AVAILABILITY, "variables": {"slots": [f"slot_{slot_id}"]}}
        asked = await conversation.parse_request(sent, None, UNKNOWN_CLIENT)
        stream = execute_stream(asked.operation, asked.variables, conversation.create_context(None))
        with caplog.at_level(logging.ERROR):
            first, last = [answer async for answer in stream]
    assert first.body["data"]
    (told,) = last.body["errors"]
    assert told["extensions"]["code"] == "INTERNAL"
    assert told["path"] == ["slotAvailability"]
    assert DETAIL not in str(told)
    assert told["extensions"]["errorId"] in caplog.text
    assert DETAIL in caplog.text


@pytest.fixture(scope="module")
def failing(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """An app whose documents these tests may spoil."""
    with app_variant(
        app_environment(servers, "failing"), tmp_path_factory.mktemp("failing")
    ) as app:
        yield app


@pytest.fixture
async def organizer(failing: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(failing.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        yield GraphQLTestClient(http, failing.url, await sign_in_new_user(auth, Role.ORGANIZER))


@pytest.fixture(params=["http", "websocket"])
async def asking(
    request: pytest.FixtureRequest, failing: AppProcess, organizer: GraphQLTestClient
) -> AsyncIterator[GraphQLTestClient | WebSocketTestClient]:
    """The organiser, by either transport."""
    if request.param == "http":
        yield organizer
    else:
        async with open_websocket(failing, organizer.token) as opened:
            yield opened


def spoil(app: AppProcess, collection: str, query: Json, update: Json) -> None:
    """Let documents be such that whoever reads them fails."""
    with closing(MongoClient[Json](app.environment["SLOTLOCK_MONGO_URL"])) as client:
        client.get_default_database()[collection].update_many(query, update)


async def error_told(
    asking: GraphQLTestClient | WebSocketTestClient, query: str, **variables: object
) -> Json:
    """The only error of an answer, or of an operation that was not executed."""
    if isinstance(asking, GraphQLTestClient):
        (error,) = (await asking.send(query, **variables))["errors"]
    else:
        await asking.subscribe("1", query, **variables)
        payload = (await asking.receive())["payload"]
        (error,) = payload if isinstance(payload, list) else payload["errors"]
    assert error["extensions"]["code"] == "INTERNAL"
    told: Json = error
    return told


async def test_a_field_that_fails_is_told_by_an_id_that_the_log_knows(
    failing: AppProcess,
    organizer: GraphQLTestClient,
    asking: GraphQLTestClient | WebSocketTestClient,
) -> None:
    slot_id = (await organizer.create_slot())["id"]
    spoil(failing, "slots", {"_id": ObjectId(slot_id[-24:])}, {"$unset": {"capacity": 1}})
    error = await error_told(asking, SLOT, id=slot_id)
    assert error["path"] == ["slot"]
    assert "capacity" not in str(error)
    assert f"error {error['extensions']['errorId']}: a field failed" in failing.log
    assert "KeyError: 'capacity'" in failing.log


async def test_what_fails_outside_the_fields_is_told_by_an_id_that_the_log_knows(
    failing: AppProcess, asking: GraphQLTestClient | WebSocketTestClient
) -> None:
    spoil(failing, "sessions", {}, {"$set": {"role": DETAIL}})
    error = await error_told(asking, "{ __typename }")
    assert "path" not in error
    assert DETAIL not in str(error)
    (line,) = (each for each in failing.log.splitlines() if error["extensions"]["errorId"] in each)
    assert "failed outside its" in line
    assert DETAIL in failing.log.partition(line)[2]
