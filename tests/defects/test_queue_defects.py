"""What an admission queue can do wrong: each defect with its guard, and without it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import create_campaign
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    open_isolated_queue,
)

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_defects"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as deployment:
        deployment.redis.flushall()
        yield deployment


async def killed_with_the_line_in_hand(
    deployment: Deployment, isolated_queue: IsolatedQueue, off: str
) -> QueuedUsers:
    """Who serves is killed before they decide, and another takes over."""
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    doomed, stage = deployment.paused_worker("batch-read", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.expire_locks()
    deployment.worker(off)
    return line


async def test_a_request_leaves_the_line_only_when_its_outcome_is_written(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await killed_with_the_line_in_hand(deployment, isolated_queue, "")
    await line.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_when_taken_requests_die_with_who_took_them(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await killed_with_the_line_in_hand(deployment, isolated_queue, "ack-after-write")
    assert await line.result_names() == ["LOST"] * 4
    assert deployment.consistent_booking_ids(line.slot_id) == set()


async def test_a_request_that_could_not_be_served_is_served_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    deployment.worker("first-write")
    await line.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_in_finally_requests_are_lost_with_an_error(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    deployment.worker("first-write ack-on-success")
    await line.wait_for_status("LOST")
    assert deployment.consistent_booking_ids(line.slot_id) == set()


async def clashing(
    deployment: Deployment, isolated_queue: IsolatedQueue, off: str
) -> tuple[list[str], int]:
    """Ada stands in line for two slots at one time: what she is told, and how many she has."""
    campaign_id = await create_campaign(
        deployment.organizer(isolated_queue.frontend), forbidOverlap=True
    )
    lines = []
    for _ in range(2):
        slot_id = await deployment.add_slot(isolated_queue.frontend, campaignId=campaign_id)
        lines.append(QueuedUsers(deployment, isolated_queue.frontend, slot_id, [], [], []))
        await lines[-1].enqueue(deployment.client(isolated_queue.frontend, 0))
    deployment.worker(off)
    for line in lines:
        await line.wait_for_status("ANSWERED")
    received = sorted([name for line in lines for name in await line.result_names()])
    return received, sum(len(deployment.consistent_booking_ids(line.slot_id)) for line in lines)


async def test_what_was_looked_at_before_the_line_is_looked_at_again_when_the_turn_comes(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await clashing(deployment, isolated_queue, "") == (["Booked", "TimeConflict"], 1)


async def test_control_with_rules_before_the_line_only_what_clashes_is_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await clashing(deployment, isolated_queue, "time-conflicts") == (["Booked", "Booked"], 2)


async def given_back_before_it_comes_again(
    deployment: Deployment, isolated_queue: IsolatedQueue, off: str
) -> int:
    """Who was booked by one that died gives it back; their request is delivered once more."""
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    doomed, stage = deployment.paused_worker("saved", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.expire_locks()
    await line.cancel(0)
    deployment.worker(off)
    await line.wait_until_empty()
    return len(deployment.consistent_booking_ids(line.slot_id))


async def test_who_gave_a_place_back_is_not_booked_again_by_their_request_that_comes_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await given_back_before_it_comes_again(deployment, isolated_queue, "") == 0


async def test_control_without_keys_in_line_who_gave_a_place_back_is_booked_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await given_back_before_it_comes_again(deployment, isolated_queue, "queue-keys") == 1


async def two_serve(deployment: Deployment, isolated_queue: IsolatedQueue, off: str) -> list[str]:
    """One of two falls asleep with the first request in hand; what is told when the second is."""
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=0, capacity=1)
    both = [deployment.paused_worker("batch-read", off) for _ in range(2)]
    await line.enqueue(deployment.client(isolated_queue.frontend, 0))
    reached = {f"{stage.key}:paused": worker for worker, stage in both}
    found: Any = await asyncio.to_thread(deployment.redis.blpop, list(reached), 4)
    sleeper = reached[found[0].decode()]
    sleeper.process.send_signal(signal.SIGSTOP)
    for _, stage in both:
        stage.resume()
    await line.enqueue(deployment.client(isolated_queue.frontend, 1))
    line.expire_locks()
    await line.wait_for_status("ANSWERED", 1)
    received = await line.result_names()
    sleeper.process.send_signal(signal.SIGCONT)
    await line.wait_for_status("ANSWERED")
    return received


async def test_nobody_is_served_before_who_came_before_them(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await two_serve(deployment, isolated_queue, "") == ["Booked", "SlotFull"]


async def test_control_without_turns_who_came_later_gets_the_place(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await two_serve(deployment, isolated_queue, "queue-lease") == ["QUEUED", "Booked"]


async def lost_in_hand(deployment: Deployment, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all while requests are in hand: what was told then, and how many have places."""
    line = await enqueue_users(deployment, front, user_count=2, capacity=2)
    slow, stage = deployment.paused_worker("commit")
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.redis.flushall()
    received = await line.result_names()
    stage.resume()
    assert slow.stop() == 0
    return received, len(deployment.consistent_booking_ids(line.slot_id))


async def test_who_was_told_lost_is_not_booked_by_who_still_had_the_request(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await lost_in_hand(deployment, isolated_queue.frontend) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_who_was_told_lost_is_booked(deployment: Deployment) -> None:
    assert await lost_in_hand(deployment, deployment.app("lost-records")) == (["LOST", "LOST"], 2)


async def lost_and_restored(deployment: Deployment, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all, and comes back with what it had."""
    line = await enqueue_users(deployment, front, user_count=2, capacity=2)
    copies = line.entries
    deployment.redis.flushall()
    received = await line.result_names()
    line.redeliver(copies)
    deployment.worker()
    await line.wait_until_empty()
    return received, len(deployment.consistent_booking_ids(line.slot_id))


async def test_who_was_told_lost_is_not_booked_from_a_redis_that_was_restored(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    assert await lost_and_restored(deployment, isolated_queue.frontend) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_a_restored_redis_books_who_was_told_lost(
    deployment: Deployment,
) -> None:
    assert await lost_and_restored(deployment, deployment.app("lost-records")) == (
        ["LOST", "LOST"],
        2,
    )
