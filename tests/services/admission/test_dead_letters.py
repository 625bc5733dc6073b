"""What cannot be served is set aside, and whoever stands beside it is served."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
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
    open_isolated_queue,
    watch_ticket,
)

NO_REQUESTS: list[dict[Any, Any]] = [
    {"x": "y"},
    {b"\xff": b"\xfe", b"": b""},
    {"slot": "nobody's", "user": "nobody", "by": "nobody", "key": "none", "request_hash": "none"},
    {"ms": "9" * 30},
    {"ms": "-1"},
    {"ms": "\u0663"},
    {f"field {number}": "x" for number in range(5_000)},
]


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_poison"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as deployment:
        deployment.redis.flushall()
        yield deployment


async def test_what_is_no_request_is_set_aside_and_those_in_line_are_served(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=3)
    line.redeliver(NO_REQUESTS)
    await line.enqueue(deployment.client(isolated_queue.frontend, 2))
    deployment.worker()
    await line.assert_results("Booked", "Booked", "Booked")
    await line.wait_until_empty()
    await wait_for_dead_letter_metric(isolated_queue, line.partition, len(NO_REQUESTS))


async def test_a_request_that_always_fails_is_set_aside_and_its_neighbours_are_served(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_with_poison(deployment, isolated_queue.frontend)
    async with watch_ticket(line, POISON_INDEX) as watcher:
        deployment.worker("holds-raise")
        await wait_until_only_poison_failed(line)
        await expect_status(watcher, "FAILED")
    assert (await line.resend(POISON_INDEX, hold=True))["status"] == "FAILED"
    await wait_for_dead_letter_metric(isolated_queue, line.partition, 1)


async def replaced_whenever_they_die(line: QueuedUsers, off: str) -> int:
    """The poisoned one is the death of all who serve them, until they are set aside: how many."""

    async def look() -> dict[str, Any]:
        return {"told": (await line.result_names())[POISON_INDEX], "code": worker.process.poll()}

    for deaths in range(20):
        worker = line.deployment.worker(off)
        seen = await poll_until(
            look, lambda seen: seen["code"] is not None or seen["told"] != "QUEUED", "an end"
        )
        if seen["told"] != "QUEUED":
            return deaths
        line.expire_locks()
    raise AssertionError("they die for ever")


async def test_a_request_that_kills_who_serves_it_is_set_aside_and_its_neighbours_are_served(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_with_poison(deployment, isolated_queue.frontend)
    async with watch_ticket(line, POISON_INDEX) as watcher:
        assert await replaced_whenever_they_die(line, "holds-kill") == 6
        await wait_until_only_poison_failed(line)
        await expect_status(watcher, "FAILED")
    await wait_for_dead_letter_metric(isolated_queue, line.partition, 1)


async def test_control_served_together_for_ever_a_killer_takes_its_neighbours_with_it(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_with_poison(deployment, isolated_queue.frontend)
    assert await replaced_whenever_they_die(line, "holds-kill suspects") == 6
    await line.wait_for_status("FAILED", *without_poison(line))
    assert deployment.consistent_booking_ids(line.slot_id) == set()


async def with_a_page_that_is_turned(deployment: Deployment, front: AppProcess) -> QueuedUsers:
    """People in line in a campaign that looks at their pages, with places for all."""
    chosen = await create_campaign(deployment.organizer(front), maxBookings=2)
    slot_id = await deployment.add_slot(front, capacity=4, campaignId=chosen)
    line = QueuedUsers(deployment, front, slot_id, [], [], [])
    for person in deployment.clients(front, 4):
        await line.enqueue(person)
    return line


async def test_one_whose_page_others_turn_holds_up_nobody_behind_them(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await with_a_page_that_is_turned(deployment, isolated_queue.frontend)
    deployment.worker("contended-user")
    await line.assert_results(*["Booked"] * 4)
    await line.assert_arrival_order()


async def test_control_served_as_one_batch_for_ever_all_wait_for_the_one_page(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await with_a_page_that_is_turned(deployment, isolated_queue.frontend)
    _, tried = deployment.paused_worker("retried", "contended-user smaller-batches")
    await asyncio.to_thread(tried.wait_until_reached)
    assert await line.result_names() == ["QUEUED"] * 4
