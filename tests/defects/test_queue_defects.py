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


async def kill_paused_worker(queued: QueuedUsers, point: str, without: str) -> None:
    """Kill a worker at this point, and let its locks expire."""
    worker, pause_point = queued.deployment.paused_worker(point, without)
    await asyncio.to_thread(pause_point.wait_until_reached)
    worker.kill()
    queued.expire_locks()


async def assert_processed_or_lost(queued: QueuedUsers, *, is_lost: bool) -> None:
    """Require two of four requests to be booked, or all of them to be lost."""
    if is_lost:
        await queued.wait_for_status("LOST")
        assert queued.deployment.consistent_booking_ids(queued.slot_id) == set()
    else:
        await queued.assert_results("Booked", "Booked", "SlotFull", "SlotFull")


@pytest.mark.parametrize("without", ["", "ack-after-write"])
async def test_a_request_stays_in_the_queue_until_its_outcome_is_written(
    deployment: Deployment, frontend: AppProcess, without: str
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
    await kill_paused_worker(queued, "batch-read", without)
    deployment.worker(without)
    await assert_processed_or_lost(queued, is_lost=bool(without))


@pytest.mark.parametrize("without", ["", "ack-on-success"])
async def test_a_request_that_failed_is_processed_again(
    deployment: Deployment, frontend: AppProcess, without: str
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=4, capacity=2)
    deployment.worker(f"first-write {without}")
    await assert_processed_or_lost(queued, is_lost=bool(without))


@pytest.mark.parametrize(
    ("without", "second_outcome"), [("", "TimeConflict"), ("time-conflicts", "Booked")]
)
async def test_the_rules_are_applied_again_when_a_request_is_processed(
    deployment: Deployment, frontend: AppProcess, without: str, second_outcome: str
) -> None:
    campaign_id = await create_campaign(deployment.organizer(frontend), forbidOverlap=True)
    queues = []
    for _ in range(2):
        slot_id = await deployment.add_slot(frontend, campaignId=campaign_id)
        queues.append(QueuedUsers(deployment, frontend, slot_id, [], [], []))
        await queues[-1].enqueue(deployment.client(frontend, 0))
    deployment.worker(without)
    for queued in queues:
        await queued.wait_for_status("ANSWERED")
    outcomes = sorted([name for queued in queues for name in await queued.result_names()])
    assert outcomes == ["Booked", second_outcome]
    bookings = [deployment.consistent_booking_ids(queued.slot_id) for queued in queues]
    assert sum(map(len, bookings)) == outcomes.count("Booked")


@pytest.mark.parametrize(("without", "booking_count"), [("", 0), ("queue-keys", 1)])
async def test_a_redelivered_request_does_not_book_again_after_a_cancellation(
    deployment: Deployment, frontend: AppProcess, without: str, booking_count: int
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=1, capacity=1)
    # Between the write of the booking and the acknowledgement:
    await kill_paused_worker(queued, "saved", without)
    await queued.cancel(0)
    deployment.worker(without)
    await queued.wait_until_empty()
    assert len(deployment.consistent_booking_ids(queued.slot_id)) == booking_count


@pytest.mark.parametrize(
    ("without", "results_then"),
    [("", ["Booked", "SlotFull"]), ("queue-lease", ["QUEUED", "Booked"])],
)
async def test_requests_are_processed_in_order_of_arrival_although_a_worker_is_suspended(
    deployment: Deployment, frontend: AppProcess, without: str, results_then: list[str]
) -> None:
    queued = await enqueue_users(deployment, frontend, user_count=0, capacity=1)
    workers = [deployment.paused_worker("batch-read", without) for _ in range(2)]
    await queued.enqueue(deployment.client(frontend, 0))
    by_key = {f"{pause_point.key}:paused": worker for worker, pause_point in workers}
    popped: Any = await asyncio.to_thread(deployment.redis.blpop, list(by_key), 30)
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
    assert results == results_then


@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize(("without", "booking_count"), [("", 0), ("lost-records", 2)])
async def test_a_request_reported_as_lost_is_not_booked_by_its_worker_or_from_a_restored_redis(
    deployment: Deployment,
    frontend: AppProcess,
    without: str,
    booking_count: int,
    is_restored: bool,
) -> None:
    app = deployment.app(without) if without else frontend
    queued = await enqueue_users(deployment, app, user_count=2, capacity=2)
    entries = queued.entries
    if not is_restored:
        worker, pause_point = deployment.paused_worker("commit")
        await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.flushall()
    assert await queued.result_names() == ["LOST", "LOST"]
    if is_restored:
        queued.redeliver(entries)
        deployment.worker()
        await queued.wait_until_empty()
    else:
        pause_point.resume()
        assert worker.stop() == 0
    assert len(deployment.consistent_booking_ids(queued.slot_id)) == booking_count
