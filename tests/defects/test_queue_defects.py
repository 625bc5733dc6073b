"""Defects of admission queues: each occurs only without its guard."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import create_campaign
from tests.support.queue.queued_users import IsolatedQueue, QueuedUsers, enqueue_users

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """Yield four members and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as opened:
        opened.redis.flushall()
        yield opened


@pytest.fixture
def frontend(isolated_queue: IsolatedQueue) -> AppProcess:
    """Return an app that adds requests to the queue and does not process them."""
    return isolated_queue.frontend


async def kill_worker_after_read(
    deployment: Deployment, frontend: AppProcess, without_guards: str
) -> QueuedUsers:
    """Kill a worker after it read four requests for two places, and start another one."""
    queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
    worker, pause_point = deployment.paused_worker("batch-read", without_guards)
    await asyncio.to_thread(pause_point.wait_until_reached)
    worker.kill()
    queued.expire_locks()
    deployment.worker(without_guards)
    return queued


async def test_a_request_stays_in_the_queue_until_its_outcome_is_written(
    deployment: Deployment, frontend: AppProcess
) -> None:
    queued = await kill_worker_after_read(deployment, frontend, "")
    await queued.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_on_read_requests_are_lost_with_their_worker(
    deployment: Deployment, frontend: AppProcess
) -> None:
    queued = await kill_worker_after_read(deployment, frontend, "ack-after-write")
    assert await queued.result_names() == ["LOST"] * 4
    assert deployment.consistent_booking_ids(queued.slot_id) == set()


async def test_a_request_that_failed_is_processed_again(
    deployment: Deployment, frontend: AppProcess
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
    deployment.worker("first-write")
    await queued.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_in_finally_requests_are_lost_with_an_error(
    deployment: Deployment, frontend: AppProcess
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
    deployment.worker("first-write ack-on-success")
    await queued.wait_for_status("LOST")
    assert deployment.consistent_booking_ids(queued.slot_id) == set()


async def process_conflicting_requests(
    deployment: Deployment, frontend: AppProcess, without_guards: str
) -> tuple[list[str], int]:
    """Let Ada queue for two slots at the same time. Returns the outcomes and her bookings."""
    campaign_id = await create_campaign(deployment.organizer(frontend), forbidOverlap=True)
    queues = []
    for _ in range(2):
        slot_id = await deployment.add_slot(frontend, campaignId=campaign_id)
        queues.append(QueuedUsers(deployment, frontend, slot_id, [], [], []))
        await queues[-1].enqueue(deployment.client(frontend, 0))
    deployment.worker(without_guards)
    for queued in queues:
        await queued.wait_for_status("ANSWERED")
    outcomes = sorted([name for queued in queues for name in await queued.result_names()])
    bookings = [deployment.consistent_booking_ids(queued.slot_id) for queued in queues]
    return outcomes, sum(map(len, bookings))


async def test_the_rules_are_applied_again_when_a_request_is_processed(
    deployment: Deployment, frontend: AppProcess
) -> None:
    result = await process_conflicting_requests(deployment, frontend, "")
    assert result == (["Booked", "TimeConflict"], 1)


async def test_control_with_rules_only_before_the_queue_two_bookings_overlap(
    deployment: Deployment, frontend: AppProcess
) -> None:
    result = await process_conflicting_requests(deployment, frontend, "time-conflicts")
    assert result == (["Booked", "Booked"], 2)


async def redeliver_after_cancellation(
    deployment: Deployment, frontend: AppProcess, without_guards: str
) -> int:
    """Let a user cancel before their request is delivered again. Returns their bookings.

    The worker is killed between the write of the booking and the acknowledgement.
    """
    queued = await enqueue_users(deployment, frontend, user_count=1, capacity=1)
    worker, pause_point = deployment.paused_worker("saved", without_guards)
    await asyncio.to_thread(pause_point.wait_until_reached)
    worker.kill()
    queued.expire_locks()
    await queued.cancel(0)
    deployment.worker(without_guards)
    await queued.wait_until_empty()
    return len(deployment.consistent_booking_ids(queued.slot_id))


async def test_a_redelivered_request_does_not_book_again_after_a_cancellation(
    deployment: Deployment, frontend: AppProcess
) -> None:
    assert await redeliver_after_cancellation(deployment, frontend, "") == 0


async def test_control_without_request_keys_a_redelivered_request_books_again(
    deployment: Deployment, frontend: AppProcess
) -> None:
    assert await redeliver_after_cancellation(deployment, frontend, "queue-keys") == 1


async def suspend_one_of_two_workers(
    deployment: Deployment, frontend: AppProcess, without_guards: str
) -> list[str]:
    """Suspend the worker that read the first of two requests for the only place.

    Returns the state of both requests when the second one has an outcome.
    """
    queued = await enqueue_users(deployment, frontend, user_count=0, capacity=1)
    workers = [deployment.paused_worker("batch-read", without_guards) for _ in range(2)]
    await queued.enqueue(deployment.client(frontend, 0))
    by_key = {f"{pause_point.key}:paused": worker for worker, pause_point in workers}
    popped: Any = await asyncio.to_thread(deployment.redis.blpop, list(by_key), 4)
    suspended = by_key[popped[0].decode()]
    suspended.process.send_signal(signal.SIGSTOP)
    for _, pause_point in workers:
        pause_point.resume()
    await queued.enqueue(deployment.client(frontend, 1))
    queued.expire_locks()
    await queued.wait_for_status("ANSWERED", 1)
    results = await queued.result_names()
    suspended.process.send_signal(signal.SIGCONT)
    await queued.wait_for_status("ANSWERED")
    return results


async def test_requests_are_processed_in_order_of_arrival_although_a_worker_is_suspended(
    deployment: Deployment, frontend: AppProcess
) -> None:
    assert await suspend_one_of_two_workers(deployment, frontend, "") == ["Booked", "SlotFull"]


async def test_control_without_the_lease_of_a_partition_the_later_request_is_booked(
    deployment: Deployment, frontend: AppProcess
) -> None:
    results = await suspend_one_of_two_workers(deployment, frontend, "queue-lease")
    assert results == ["QUEUED", "Booked"]


async def lose_redis_before_commit(
    deployment: Deployment, frontend: AppProcess
) -> tuple[list[str], int]:
    """Delete everything in Redis while a worker is about to commit.

    Returns the reported states after that, and the number of bookings in the end.
    """
    queued = await enqueue_users(deployment, frontend, user_count=2, capacity=2)
    worker, pause_point = deployment.paused_worker("commit")
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.flushall()
    results = await queued.result_names()
    pause_point.resume()
    assert worker.stop() == 0
    return results, len(deployment.consistent_booking_ids(queued.slot_id))


async def test_a_request_reported_as_lost_is_not_booked_by_the_worker_that_read_it(
    deployment: Deployment, frontend: AppProcess
) -> None:
    assert await lose_redis_before_commit(deployment, frontend) == (["LOST", "LOST"], 0)


async def test_control_without_lost_records_a_request_reported_as_lost_is_booked(
    deployment: Deployment,
) -> None:
    result = await lose_redis_before_commit(deployment, deployment.app("lost-records"))
    assert result == (["LOST", "LOST"], 2)


async def restore_lost_redis(deployment: Deployment, frontend: AppProcess) -> tuple[list[str], int]:
    """Delete everything in Redis and restore the requests.

    Returns the reported states in between, and the number of bookings in the end.
    """
    queued = await enqueue_users(deployment, frontend, user_count=2, capacity=2)
    entries = queued.entries
    deployment.redis.flushall()
    results = await queued.result_names()
    queued.redeliver(entries)
    deployment.worker()
    await queued.wait_until_empty()
    return results, len(deployment.consistent_booking_ids(queued.slot_id))


async def test_a_request_reported_as_lost_is_not_booked_from_a_restored_redis(
    deployment: Deployment, frontend: AppProcess
) -> None:
    assert await restore_lost_redis(deployment, frontend) == (["LOST", "LOST"], 0)


async def test_control_without_lost_records_a_restored_redis_books_a_lost_request(
    deployment: Deployment,
) -> None:
    result = await restore_lost_redis(deployment, deployment.app("lost-records"))
    assert result == (["LOST", "LOST"], 2)
