"""MongoDB is away while people stand in line: they wait, and nobody is lost or set aside."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.client import CREATE_SLOT, Json, slot_input
from tests.support.polling import poll_until
from tests.support.queue.queued_users import (
    IsolatedQueue,
    enqueue_users,
    expect_final_status,
    open_isolated_queue,
    watch_ticket,
)

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]
BACK = {"kill": "start", "pause": "resume"}


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """A MongoDB that may be harmed."""
    with restartable_server(tmp_path_factory.mktemp("truth") / "mongo", "mongo") as mongo:
        yield mongo


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, mongo: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "own", mongo.url
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as deployment:
        deployment.redis.flushall()
        await takes_writes(deployment, isolated_queue.frontend)
        yield deployment


async def takes_writes(deployment: Deployment, app: AppProcess) -> None:
    """Wait until the app writes again, after what the test before did to MongoDB."""

    async def create() -> Json:
        return await deployment.organizer(app).send(CREATE_SLOT, input=slot_input())

    await poll_until(create, lambda answer: "errors" not in answer, "a slot can be created")


async def says_of_mongodb(app: AppProcess, state: str) -> None:
    """Wait until the app has noticed."""

    async def look() -> Json:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            readiness: Json = (await http.get(app.url + "/readyz")).json()
            return readiness

    await poll_until(look, lambda seen: seen["mongodb"] == state, f"MongoDB is {state}")


@contextmanager
def away(mongo: RestartableServer, harm: str) -> Iterator[None]:
    """Harm MongoDB for a while."""
    getattr(mongo, harm)()
    try:
        yield
    finally:
        getattr(mongo, BACK[harm])()


@pytest.mark.parametrize("harm", BACK)
async def test_however_often_it_is_tried_while_mongodb_is_away_all_are_answered_when_it_is_back(
    deployment: Deployment, isolated_queue: IsolatedQueue, mongo: RestartableServer, harm: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    doomed, before = deployment.paused_worker("batch-read")
    await asyncio.to_thread(before.wait_until_reached)
    _, tried = deployment.paused_worker("retried", "short-timeouts")
    async with watch_ticket(line, 0) as watcher:
        assert (await watcher.next_result())["status"] == "QUEUED"
        with away(mongo, harm):
            doomed.kill()
            line.expire_locks()
            await asyncio.to_thread(tried.wait_until_reached)
            assert len(line.entries) == 4
        tried.resume()
        await expect_final_status(watcher, "ANSWERED")
    await says_of_mongodb(isolated_queue.frontend, "up")
    await line.assert_results(*TWO_OF_FOUR)
    assert deployment.redis.xlen(queue_keys(line.partition).dead_letters) == 0


@contextmanager
def closed_to_writes(deployment: Deployment) -> Iterator[None]:
    """Let MongoDB refuse all writes for a while, as one that is full does."""
    admin = deployment.mongo.admin
    admin.command({"setUserWriteBlockMode": 1, "global": True})
    try:
        yield
    finally:
        admin.command({"setUserWriteBlockMode": 1, "global": False})


async def test_while_mongodb_refuses_all_writes_nobody_is_set_aside(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    with closed_to_writes(deployment):
        _, tried = deployment.paused_worker("retried", "short-timeouts")
        await asyncio.to_thread(tried.wait_until_reached)
        assert await line.result_names() == ["QUEUED"] * 4
    tried.resume()
    await line.assert_results(*TWO_OF_FOUR)
    assert deployment.redis.xlen(queue_keys(line.partition).dead_letters) == 0


async def test_who_alone_cannot_be_written_is_set_aside_by_a_mongodb_that_takes_other_writes(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=2)
    database = deployment.mongo.get_default_database()
    database.command("collMod", "idempotency_records", validator={"never": True})
    try:
        deployment.worker("short-timeouts")
        await line.wait_for_status("FAILED")
    finally:
        database.command("collMod", "idempotency_records", validator={})


@pytest.mark.parametrize("step", ["batch-read", "commit", "decided", "saved"])
async def test_at_whatever_step_mongodb_goes_away_each_request_has_one_outcome(
    deployment: Deployment, isolated_queue: IsolatedQueue, mongo: RestartableServer, step: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    _, stage = deployment.paused_worker(step, "short-timeouts")
    await asyncio.to_thread(stage.wait_until_reached)
    with away(mongo, "kill"):
        await says_of_mongodb(isolated_queue.frontend, "unavailable")
        stage.resume()
    await says_of_mongodb(isolated_queue.frontend, "up")
    await line.assert_results(*TWO_OF_FOUR)
    assert deployment.redis.xlen(queue_keys(line.partition).dead_letters) == 0
