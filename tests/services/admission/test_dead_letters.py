"""A request that cannot be processed becomes a dead letter; the others are processed."""

import asyncio
from typing import Any

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import create_campaign
from tests.support.polling import poll_until
from tests.support.queue.poison import (
    POISON_INDEX,
    enqueue_with_poison,
    wait_for_dead_letter_metric,
    wait_until_only_poison_failed,
    without_poison,
)
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_status,
    watch_ticket,
)

INVALID_ENTRIES: list[dict[Any, Any]] = [
    {"x": "y"},
    {b"\xff": b"\xfe", b"": b""},
    {"slot": "no id", "user": "no id", "by": "no id", "key": "none", "request_hash": "none"},
    {"ms": "9" * 30},
    {"ms": "-1"},
    {"ms": "\u0663"},
    {f"field {number}": "x" for number in range(5_000)},
]
MAX_WORKERS = 20


async def test_entries_that_are_no_requests_become_dead_letters_and_requests_are_processed(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=3)
    queued.redeliver(INVALID_ENTRIES)
    await queued.enqueue(deployment.client(isolated_queue.frontend, 2))
    deployment.worker()
    await queued.assert_results("Booked", "Booked", "Booked")
    await queued.wait_until_empty()
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, len(INVALID_ENTRIES))


async def test_a_request_that_always_fails_becomes_a_dead_letter_and_the_others_are_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_with_poison(deployment, isolated_queue.frontend)
    async with watch_ticket(queued, POISON_INDEX) as watcher:
        deployment.worker("holds-raise")
        await wait_until_only_poison_failed(queued)
        await expect_status(watcher, "FAILED")
    assert (await queued.resend(POISON_INDEX, hold=True))["status"] == "FAILED"
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, 1)


async def killed_worker_count(queued: QueuedUsers, without_guards: str) -> int:
    """Replace each worker that the poison kills. Returns how many died before it failed."""

    async def fetch_state() -> tuple[str, int | None]:
        return (await queued.result_names())[POISON_INDEX], worker.process.poll()

    for killed in range(MAX_WORKERS):
        worker = queued.deployment.worker(without_guards)
        result, _ = await poll_until(
            fetch_state,
            lambda state: state[0] != "QUEUED" or state[1] is not None,
            "a result or a dead worker",
        )
        if result != "QUEUED":
            return killed
        queued.expire_locks()
    raise AssertionError("every worker was killed")


async def test_a_request_that_kills_its_workers_becomes_a_dead_letter_and_the_others_are_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_with_poison(deployment, isolated_queue.frontend)
    async with watch_ticket(queued, POISON_INDEX) as watcher:
        assert await killed_worker_count(queued, "holds-kill") == 6
        await wait_until_only_poison_failed(queued)
        await expect_status(watcher, "FAILED")
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, 1)


async def test_control_without_isolation_a_request_that_kills_workers_fails_its_whole_batch(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_with_poison(deployment, isolated_queue.frontend)
    assert await killed_worker_count(queued, "holds-kill suspects") == 6
    await queued.wait_for_status("FAILED", *without_poison(queued))
    assert deployment.consistent_booking_ids(queued.slot_id) == set()


async def enqueue_for_campaign(deployment: Deployment, frontend: AppProcess) -> QueuedUsers:
    """Enqueue four users for four places of a campaign that checks their other bookings."""
    campaign_id = await create_campaign(deployment.organizer(frontend), maxBookings=2)
    slot_id = await deployment.add_slot(frontend, capacity=4, campaignId=campaign_id)
    queued = QueuedUsers(deployment, frontend, slot_id)
    for client in deployment.clients(frontend, 4):
        await queued.enqueue(client)
    return queued


async def test_a_user_whose_version_changes_constantly_does_not_delay_later_requests(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_for_campaign(deployment, isolated_queue.frontend)
    deployment.worker("contended-user")
    await queued.assert_results(*["Booked"] * 4)
    await queued.assert_arrival_order()


async def test_control_without_smaller_batches_all_requests_wait_for_the_contended_user(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_for_campaign(deployment, isolated_queue.frontend)
    _, retried = deployment.paused_worker("retried", "contended-user smaller-batches")
    await asyncio.to_thread(retried.wait_until_reached)
    assert await queued.result_names() == ["QUEUED"] * 4
