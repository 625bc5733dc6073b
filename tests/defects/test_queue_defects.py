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
def hall(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(servers, tmp_path_factory.mktemp("hall"), "queue_defects") as hall:
        yield hall


@pytest.fixture
async def scene(hall: IsolatedQueue, logs: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(hall.environment, logs, member_count=4) as scene:
        scene.redis.flushall()
        yield scene


async def killed_with_the_line_in_hand(
    scene: Deployment, hall: IsolatedQueue, off: str
) -> QueuedUsers:
    """Who serves is killed before they decide, and another takes over."""
    line = await enqueue_users(scene, hall.frontend, user_count=4, capacity=2)
    doomed, stage = scene.paused_worker("taken", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.expire_locks()
    scene.worker(off)
    return line


async def test_a_request_leaves_the_line_only_when_its_outcome_is_written(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    line = await killed_with_the_line_in_hand(scene, hall, "")
    await line.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_when_taken_requests_die_with_who_took_them(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    line = await killed_with_the_line_in_hand(scene, hall, "ack-after")
    assert await line.result_names() == ["LOST"] * 4
    assert scene.consistent_booking_ids(line.slot_id) == set()


async def test_a_request_that_could_not_be_served_is_served_again(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    line = await enqueue_users(scene, hall.frontend, user_count=4, capacity=2)
    scene.worker("first-write")
    await line.assert_results(*TWO_OF_FOUR)


async def test_control_acknowledged_in_finally_requests_are_lost_with_an_error(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    line = await enqueue_users(scene, hall.frontend, user_count=4, capacity=2)
    scene.worker("first-write ack-when-served")
    await line.wait_for_status("LOST")
    assert scene.consistent_booking_ids(line.slot_id) == set()


async def clashing(scene: Deployment, hall: IsolatedQueue, off: str) -> tuple[list[str], int]:
    """Ada stands in line for two slots at one time: what she is told, and how many she has."""
    campaign_id = await create_campaign(scene.organizer(hall.frontend), forbidOverlap=True)
    lines = []
    for _ in range(2):
        slot_id = await scene.add_slot(hall.frontend, campaignId=campaign_id)
        lines.append(QueuedUsers(scene, hall.frontend, slot_id, [], [], []))
        await lines[-1].enqueue(scene.client(hall.frontend, 0))
    scene.worker(off)
    for line in lines:
        await line.wait_for_status("ANSWERED")
    told = sorted([name for line in lines for name in await line.result_names()])
    return told, sum(len(scene.consistent_booking_ids(line.slot_id)) for line in lines)


async def test_what_was_looked_at_before_the_line_is_looked_at_again_when_the_turn_comes(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await clashing(scene, hall, "") == (["Booked", "TimeConflict"], 1)


async def test_control_with_rules_before_the_line_only_what_clashes_is_booked(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await clashing(scene, hall, "clashes") == (["Booked", "Booked"], 2)


async def given_back_before_it_comes_again(scene: Deployment, hall: IsolatedQueue, off: str) -> int:
    """Who was booked by one that died gives it back; their request is delivered once more."""
    line = await enqueue_users(scene, hall.frontend, user_count=1, capacity=1)
    doomed, stage = scene.paused_worker("kept", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.expire_locks()
    await line.cancel(0)
    scene.worker(off)
    await line.wait_until_empty()
    return len(scene.consistent_booking_ids(line.slot_id))


async def test_who_gave_a_place_back_is_not_booked_again_by_their_request_that_comes_again(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await given_back_before_it_comes_again(scene, hall, "") == 0


async def test_control_without_keys_in_line_who_gave_a_place_back_is_booked_again(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await given_back_before_it_comes_again(scene, hall, "queue-keys") == 1


async def two_serve(scene: Deployment, hall: IsolatedQueue, off: str) -> list[str]:
    """One of two falls asleep with the first request in hand; what is told when the second is."""
    line = await enqueue_users(scene, hall.frontend, user_count=0, capacity=1)
    both = [scene.paused_worker("taken", off) for _ in range(2)]
    await line.enqueue(scene.client(hall.frontend, 0))
    reached = {f"{stage.key}:reached": worker for worker, stage in both}
    found: Any = await asyncio.to_thread(scene.redis.blpop, list(reached), 4)
    sleeper = reached[found[0].decode()]
    sleeper.process.send_signal(signal.SIGSTOP)
    for _, stage in both:
        stage.resume()
    await line.enqueue(scene.client(hall.frontend, 1))
    line.expire_locks()
    await line.wait_for_status("ANSWERED", 1)
    told = await line.result_names()
    sleeper.process.send_signal(signal.SIGCONT)
    await line.wait_for_status("ANSWERED")
    return told


async def test_nobody_is_served_before_who_came_before_them(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await two_serve(scene, hall, "") == ["Booked", "SlotFull"]


async def test_control_without_turns_who_came_later_gets_the_place(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await two_serve(scene, hall, "lease") == ["QUEUED", "Booked"]


async def lost_in_hand(scene: Deployment, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all while requests are in hand: what was told then, and how many have places."""
    line = await enqueue_users(scene, front, user_count=2, capacity=2)
    slow, stage = scene.paused_worker("commit")
    await asyncio.to_thread(stage.wait_until_reached)
    scene.redis.flushall()
    told = await line.result_names()
    stage.resume()
    assert slow.stop() == 0
    return told, len(scene.consistent_booking_ids(line.slot_id))


async def test_who_was_told_lost_is_not_booked_by_who_still_had_the_request(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await lost_in_hand(scene, hall.frontend) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_who_was_told_lost_is_booked(scene: Deployment) -> None:
    assert await lost_in_hand(scene, scene.app("lost-mark")) == (["LOST", "LOST"], 2)


async def lost_and_restored(scene: Deployment, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all, and comes back with what it had."""
    line = await enqueue_users(scene, front, user_count=2, capacity=2)
    copies = line.entries
    scene.redis.flushall()
    told = await line.result_names()
    line.redeliver(copies)
    scene.worker()
    await line.wait_until_empty()
    return told, len(scene.consistent_booking_ids(line.slot_id))


async def test_who_was_told_lost_is_not_booked_from_a_redis_that_was_restored(
    scene: Deployment, hall: IsolatedQueue
) -> None:
    assert await lost_and_restored(scene, hall.frontend) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_a_restored_redis_books_who_was_told_lost(
    scene: Deployment,
) -> None:
    assert await lost_and_restored(scene, scene.app("lost-mark")) == (["LOST", "LOST"], 2)
