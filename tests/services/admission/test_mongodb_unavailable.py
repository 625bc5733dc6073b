"""While MongoDB is unavailable, queued requests wait; none is lost or becomes a dead letter."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.client import CREATE_SLOT, slot_input
from tests.support.polling import eventually
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    open_isolated_queue,
    watch_ticket,
)

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]
RECOVERY = {"kill": "start", "pause": "resume"}


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Yield a MongoDB that a test may kill or pause."""
    with restartable_server(tmp_path_factory.mktemp("server") / "mongo", "mongo") as server:
        yield server


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, mongo: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Yield an isolated queue with this MongoDB."""
    with open_isolated_queue(servers, tmp_path_factory.mktemp("queue"), "own", mongo.url) as opened:
        yield opened


@pytest.fixture
async def deployment(deployment: Deployment, isolated_queue: IsolatedQueue) -> Deployment:
    """Return a deployment that has recovered from what the previous test did to MongoDB."""
    organizer = deployment.organizer(isolated_queue.frontend)

    async def accepts_writes() -> bool:
        return "errors" not in await organizer.send(CREATE_SLOT, input=slot_input())

    await eventually(accepts_writes, "a created slot")
    return deployment


async def wait_for_mongodb_state(app: AppProcess, state: str) -> None:
    """Wait until the app reports MongoDB as "up" or "unavailable"."""

    async def has_state() -> bool:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            return bool((await http.get(app.url + "/readyz")).json()["mongodb"] == state)

    await eventually(has_state, f"MongoDB {state}")


@contextmanager
def unavailable(mongo: RestartableServer, action: str) -> Iterator[None]:
    """Kill or pause MongoDB for a while."""
    getattr(mongo, action)()
    try:
        yield
    finally:
        getattr(mongo, RECOVERY[action])()


def dead_letter_count(queued: QueuedUsers) -> int:
    """Return how many dead letters the partition has."""
    stream = queue_keys(queued.partition).dead_letters
    return int(queued.deployment.redis.xlen(stream))


@pytest.mark.parametrize("action", RECOVERY)
async def test_requests_retried_while_mongodb_is_unavailable_are_answered_when_it_recovers(
    deployment: Deployment, isolated_queue: IsolatedQueue, mongo: RestartableServer, action: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    killed, before = deployment.paused_worker("batch-read")
    await asyncio.to_thread(before.wait_until_reached)
    _, retried = deployment.paused_worker("retried", "short-timeouts")
    async with watch_ticket(queued, 0) as watcher:
        assert (await watcher.next_result())["status"] == "QUEUED"
        with unavailable(mongo, action):
            killed.kill()
            queued.expire_locks()
            await asyncio.to_thread(retried.wait_until_reached)
            assert len(queued.entries) == 4
        retried.resume()
        await expect_final_status(watcher, "ANSWERED")
    await wait_for_mongodb_state(isolated_queue.frontend, "up")
    await queued.assert_results(*TWO_OF_FOUR)
    assert dead_letter_count(queued) == 0


@contextmanager
def blocked_writes(deployment: Deployment) -> Iterator[None]:
    """Let MongoDB reject all writes for a while, as a full one does."""
    admin = deployment.mongo.admin
    admin.command({"setUserWriteBlockMode": 1, "global": True})
    try:
        yield
    finally:
        admin.command({"setUserWriteBlockMode": 1, "global": False})


async def test_while_mongodb_rejects_all_writes_no_request_becomes_a_dead_letter(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    with blocked_writes(deployment):
        _, retried = deployment.paused_worker("retried", "short-timeouts")
        await asyncio.to_thread(retried.wait_until_reached)
        assert await queued.result_names() == ["QUEUED"] * 4
    retried.resume()
    await queued.assert_results(*TWO_OF_FOUR)
    assert dead_letter_count(queued) == 0


async def test_a_request_that_alone_cannot_be_written_becomes_a_dead_letter(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=2)
    database = deployment.mongo.get_default_database()
    database.command("collMod", "idempotency_records", validator={"never": True})
    try:
        deployment.worker("short-timeouts")
        await queued.wait_for_status("FAILED")
    finally:
        database.command("collMod", "idempotency_records", validator={})


@pytest.mark.parametrize("step", ["batch-read", "commit", "decided", "saved"])
async def test_each_request_has_one_outcome_at_whatever_step_mongodb_fails(
    deployment: Deployment, isolated_queue: IsolatedQueue, mongo: RestartableServer, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    _, pause_point = deployment.paused_worker(step, "short-timeouts")
    await asyncio.to_thread(pause_point.wait_until_reached)
    with unavailable(mongo, "kill"):
        await wait_for_mongodb_state(isolated_queue.frontend, "unavailable")
        pause_point.resume()
    await wait_for_mongodb_state(isolated_queue.frontend, "up")
    await queued.assert_results(*TWO_OF_FOUR)
    assert dead_letter_count(queued) == 0
