"""Who serves the admission queue dies or sleeps, and each request is handled once all the same."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.admission.partitions import CONSUMER, ISOLATE_AFTER_DELIVERIES
from slotlock.infrastructure.redis.admission.scripts import CONSUMER_GROUP
from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.clients.client import Json
from tests.support.polling import poll_until
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    open_isolated_queue,
    watch_ticket,
)

# Before the decision, before it is written, before refusals are kept, before it is acknowledged.
STEPS = ["batch-read", "commit", "decided", "saved"]
THREE_OF_SIX = ["Booked"] * 3 + ["SlotFull"] * 3


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_deaths"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=12) as deployment:
        deployment.redis.flushall()
        yield deployment


async def killed(line: QueuedUsers, step: str) -> None:
    """A process takes the line, and is killed at a step."""
    doomed, stage = line.deployment.paused_worker(step)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.expire_locks()


@pytest.mark.parametrize("step", STEPS)
async def test_whoever_dies_at_a_step_each_request_has_one_outcome_in_order_of_arrival(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    async with watch_ticket(line, 0) as first, watch_ticket(line, 5) as last:
        await killed(line, step)
        deployment.worker()
        await line.assert_results(*THREE_OF_SIX)
        await line.assert_arrival_order()
        told = [await expect_final_status(each, "ANSWERED") for each in (first, last)]
    assert [ticket["outcome"]["__typename"] for ticket in told] == ["Booked", "SlotFull"]
    assert line.entries == []


async def test_however_many_die_one_after_the_other_each_request_has_one_outcome(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    for step in STEPS:
        await killed(line, step)
    deployment.worker()
    await line.assert_results(*THREE_OF_SIX)


async def test_who_dies_without_a_chance_to_say_so_is_replaced(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    doomed, stage = deployment.paused_worker("batch-read")
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.worker()
    doomed.kill()
    await line.assert_results(*THREE_OF_SIX)


async def test_places_go_in_order_of_arrival_while_servers_come_and_die(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=0, capacity=12)
    workers = [deployment.worker()]
    for number, person in enumerate(deployment.clients(isolated_queue.frontend, 12), start=1):
        await line.enqueue(person)
        if number % 4 == 0:
            workers.append(deployment.worker())
            workers.pop(0).kill()
    await line.assert_results(*["Booked"] * 12)
    await line.assert_arrival_order()


@pytest.mark.parametrize("step", STEPS)
async def test_who_slept_longer_than_their_turn_changes_nothing_when_they_wake(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    sleeper, stage = deployment.paused_worker(step)
    await asyncio.to_thread(stage.wait_until_reached)
    sleeper.process.send_signal(signal.SIGSTOP)
    line.expire_locks()
    deployment.worker()
    await line.assert_results(*THREE_OF_SIX)
    await line.cancel(0)
    before = await line.fetch_tickets()
    stage.resume()
    sleeper.process.send_signal(signal.SIGCONT)
    assert sleeper.stop() == 0  # it has finished what it had begun
    assert await line.fetch_tickets() == before
    assert len(deployment.consistent_booking_ids(line.slot_id)) == 2


async def test_who_lost_their_turn_takes_nothing_from_who_has_it(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    await killed(line, "batch-read")
    late, stage = deployment.paused_worker("lease-lost")
    await asyncio.to_thread(stage.wait_until_reached)
    line.expire_locks()
    _, present = deployment.paused_worker("batch-read")
    await asyncio.to_thread(present.wait_until_reached)
    stage.resume()

    async def waiting_for_a_turn() -> Json:
        return {"count": deployment.redis.zcard(line.worker_lock_keys.queue)}

    await poll_until(waiting_for_a_turn, lambda seen: seen["count"], "they stand in line again")
    assert await line.result_names() == ["QUEUED", "QUEUED"]
    present.resume()
    await line.assert_results("Booked", "Booked")
    assert late.process.poll() is None


async def test_a_request_that_is_delivered_many_times_has_one_outcome_and_one_booking(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    line.redeliver(line.entries * 3)
    deployment.worker()
    await line.assert_results(*THREE_OF_SIX)
    assert (
        len(await deployment.organizer(isolated_queue.frontend).fetch_slot_history(line.slot_id))
        == 0
    )


async def test_while_somebody_is_served_nobody_behind_them_is(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    slow, stage = deployment.paused_worker("batch-read")
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.worker()
    await line.enqueue(deployment.client(isolated_queue.frontend, 1))
    stage.resume()
    await line.assert_results("Booked", "SlotFull")
    assert slow.process.poll() is None


async def test_what_is_gone_from_the_line_hides_nobody_who_was_taken_after_it(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=1)
    stream, redis = queue_keys(line.partition).requests, deployment.redis
    found: Any = redis.xrange(stream, count=1)
    redis.xgroup_create(stream, CONSUMER_GROUP, "0")
    redis.xreadgroup(CONSUMER_GROUP, CONSUMER, {stream: ">"}, count=2)
    for _ in range(
        ISOLATE_AFTER_DELIVERIES
    ):  # as those who died did, so that they are taken one by one
        redis.xreadgroup(CONSUMER_GROUP, CONSUMER, {stream: "0"})
    redis.xdel(stream, found[0][0])
    deployment.worker()
    await line.wait_for_status("ANSWERED", 1, 2)
    assert await line.result_names() == ["LOST", "Booked", "SlotFull"]
