"""Each request has one outcome, even if workers are killed or suspended."""

import asyncio
import signal
from typing import Any

import pytest

from slotlock.infrastructure.redis.admission.partitions import CONSUMER, ISOLATE_AFTER_DELIVERIES
from slotlock.infrastructure.redis.admission.queue_scripts import CONSUMER_GROUP
from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment
from tests.support.polling import eventually
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    watch_ticket,
)

# Before the decision, the write, the storing of refusals and the acknowledgment.
STEPS = ["batch-read", "commit", "decided", "saved"]
THREE_OF_SIX = ["Booked"] * 3 + ["SlotFull"] * 3


async def kill_worker_at(queued: QueuedUsers, step: str) -> None:
    """Start a worker and kill it at this step."""
    worker, pause_point = queued.deployment.paused_worker(step)
    await asyncio.to_thread(pause_point.wait_until_reached)
    worker.kill()
    queued.expire_locks()


@pytest.mark.parametrize("step", STEPS)
async def test_after_a_worker_is_killed_each_request_has_one_outcome_in_order_of_arrival(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    async with watch_ticket(queued, 0) as first, watch_ticket(queued, 5) as last:
        await kill_worker_at(queued, step)
        deployment.worker()
        await queued.assert_results(*THREE_OF_SIX)
        await queued.assert_arrival_order()
        tickets = [await expect_final_status(watcher, "ANSWERED") for watcher in (first, last)]
    assert [ticket["outcome"]["__typename"] for ticket in tickets] == ["Booked", "SlotFull"]
    assert queued.entries == []


async def test_after_several_workers_are_killed_each_request_has_one_outcome(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    for step in STEPS:
        await kill_worker_at(queued, step)
    deployment.worker()
    await queued.assert_results(*THREE_OF_SIX)


async def test_a_killed_worker_is_replaced_when_its_lease_expires(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    killed, pause_point = deployment.paused_worker("batch-read")
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.worker()
    killed.kill()
    await queued.assert_results(*THREE_OF_SIX)


async def test_requests_are_booked_in_order_of_arrival_while_workers_are_replaced(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=0, capacity=12)
    workers = [deployment.worker()]
    for number, client in enumerate(deployment.clients(isolated_queue.frontend, 12), start=1):
        await queued.enqueue(client)
        if number % 4 == 0:
            workers.append(deployment.worker())
            workers.pop(0).kill()
    await queued.assert_results(*["Booked"] * 12)
    await queued.assert_arrival_order()


@pytest.mark.parametrize("step", STEPS)
async def test_a_worker_suspended_beyond_its_lease_changes_nothing_when_it_continues(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    suspended, pause_point = deployment.paused_worker(step)
    await asyncio.to_thread(pause_point.wait_until_reached)
    suspended.process.send_signal(signal.SIGSTOP)
    queued.expire_locks()
    deployment.worker()
    await queued.assert_results(*THREE_OF_SIX)
    await queued.cancel(0)
    before = await queued.fetch_tickets()
    pause_point.resume()
    suspended.process.send_signal(signal.SIGCONT)
    assert suspended.stop() == 0  # it has finished the work that it began
    assert await queued.fetch_tickets() == before
    assert len(deployment.consistent_booking_ids(queued.slot_id)) == 2


async def test_a_worker_that_lost_its_lease_does_not_process_the_requests_of_the_new_holder(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    await kill_worker_at(queued, "batch-read")
    late, late_pause = deployment.paused_worker("lease-lost")
    await asyncio.to_thread(late_pause.wait_until_reached)
    queued.expire_locks()
    _, holder_pause = deployment.paused_worker("batch-read")
    await asyncio.to_thread(holder_pause.wait_until_reached)
    late_pause.resume()

    await eventually(
        lambda: bool(deployment.redis.zcard(queued.worker_lock_keys.queue)),
        "a worker that waits for the lease",
    )
    assert await queued.result_names() == ["QUEUED", "QUEUED"]
    holder_pause.resume()
    await queued.assert_results("Booked", "Booked")
    assert late.process.poll() is None


async def test_a_request_that_is_delivered_many_times_has_one_outcome_and_one_booking(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=6, capacity=3)
    queued.redeliver(queued.entries * 3)
    deployment.worker()
    await queued.assert_results(*THREE_OF_SIX)
    organizer = deployment.organizer(isolated_queue.frontend)
    assert await organizer.fetch_slot_history(queued.slot_id) == []


async def test_a_deleted_entry_does_not_hide_the_entries_delivered_after_it(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=1)
    stream, redis = queue_keys(queued.partition).requests, deployment.redis
    first: Any = redis.xrange(stream, count=1)
    redis.xgroup_create(stream, CONSUMER_GROUP, "0")
    redis.xreadgroup(CONSUMER_GROUP, CONSUMER, {stream: ">"}, count=2)
    # As several killed workers would, so that the entries are read one by one from now on.
    for _ in range(ISOLATE_AFTER_DELIVERIES):
        redis.xreadgroup(CONSUMER_GROUP, CONSUMER, {stream: "0"})
    redis.xdel(stream, first[0][0])
    deployment.worker()
    await queued.wait_for_status("ANSWERED", 1, 2)
    assert await queued.result_names() == ["LOST", "Booked", "SlotFull"]
