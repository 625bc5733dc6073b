"""What an admission queue can do wrong: each defect with its guard, and without it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from tests.support.campaigns import campaign
from tests.support.processes import AppProcess
from tests.support.queue_scenes import Hall, InLine, open_hall, stand
from tests.support.stage import Scene, scene_on

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]


@pytest.fixture(scope="module")
def hall(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_defects") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=4) as scene:
        scene.redis.flushall()
        yield scene


async def killed_with_the_line_in_hand(scene: Scene, hall: Hall, off: str) -> InLine:
    """Who serves is killed before they decide, and another takes over."""
    line = await stand(scene, hall.front, size=4, places=2)
    doomed, stage = scene.paused_worker("taken", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.let_locks_run_out()
    scene.worker(off)
    return line


async def test_a_request_leaves_the_line_only_when_its_outcome_is_written(
    scene: Scene, hall: Hall
) -> None:
    line = await killed_with_the_line_in_hand(scene, hall, "")
    await line.assert_served(*TWO_OF_FOUR)


async def test_control_acknowledged_when_taken_requests_die_with_who_took_them(
    scene: Scene, hall: Hall
) -> None:
    line = await killed_with_the_line_in_hand(scene, hall, "ack-after")
    assert await line.told() == ["LOST"] * 4
    assert scene.live(line.slot_id) == set()


async def test_a_request_that_could_not_be_served_is_served_again(scene: Scene, hall: Hall) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    scene.worker("first-write")
    await line.assert_served(*TWO_OF_FOUR)


async def test_control_acknowledged_in_finally_requests_are_lost_with_an_error(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    scene.worker("first-write ack-when-served")
    await line.until("LOST")
    assert scene.live(line.slot_id) == set()


async def clashing(scene: Scene, hall: Hall, off: str) -> tuple[list[str], int]:
    """Ada stands in line for two slots at one time: what she is told, and how many she has."""
    campaign_id = await campaign(scene.organiser(hall.front), forbidOverlap=True)
    lines = []
    for _ in range(2):
        slot_id = await scene.slot(hall.front, campaignId=campaign_id)
        lines.append(InLine(scene, hall.front, slot_id, [], [], []))
        await lines[-1].arrive(scene.person(hall.front, 0))
    scene.worker(off)
    for line in lines:
        await line.until("ANSWERED")
    told = sorted([name for line in lines for name in await line.told()])
    return told, sum(len(scene.live(line.slot_id)) for line in lines)


async def test_what_was_looked_at_before_the_line_is_looked_at_again_when_the_turn_comes(
    scene: Scene, hall: Hall
) -> None:
    assert await clashing(scene, hall, "") == (["Booked", "TimeConflict"], 1)


async def test_control_with_rules_before_the_line_only_what_clashes_is_booked(
    scene: Scene, hall: Hall
) -> None:
    assert await clashing(scene, hall, "clashes") == (["Booked", "Booked"], 2)


async def given_back_before_it_comes_again(scene: Scene, hall: Hall, off: str) -> int:
    """Who was booked by one that died gives it back; their request is delivered once more."""
    line = await stand(scene, hall.front, size=1, places=1)
    doomed, stage = scene.paused_worker("kept", off)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.let_locks_run_out()
    await line.cancel(0)
    scene.worker(off)
    await line.until_empty()
    return len(scene.live(line.slot_id))


async def test_who_gave_a_place_back_is_not_booked_again_by_their_request_that_comes_again(
    scene: Scene, hall: Hall
) -> None:
    assert await given_back_before_it_comes_again(scene, hall, "") == 0


async def test_control_without_keys_in_line_who_gave_a_place_back_is_booked_again(
    scene: Scene, hall: Hall
) -> None:
    assert await given_back_before_it_comes_again(scene, hall, "queue-keys") == 1


async def two_serve(scene: Scene, hall: Hall, off: str) -> list[str]:
    """One of two falls asleep with the first request in hand; what is told when the second is."""
    line = await stand(scene, hall.front, size=0, places=1)
    both = [scene.paused_worker("taken", off) for _ in range(2)]
    await line.arrive(scene.person(hall.front, 0))
    reached = {f"{stage.name}:reached": worker for worker, stage in both}
    found: Any = await asyncio.to_thread(scene.redis.blpop, list(reached), 4)
    sleeper = reached[found[0].decode()]
    sleeper.process.send_signal(signal.SIGSTOP)
    for _, stage in both:
        stage.go()
    await line.arrive(scene.person(hall.front, 1))
    line.let_locks_run_out()
    await line.until("ANSWERED", 1)
    told = await line.told()
    sleeper.process.send_signal(signal.SIGCONT)
    await line.until("ANSWERED")
    return told


async def test_nobody_is_served_before_who_came_before_them(scene: Scene, hall: Hall) -> None:
    assert await two_serve(scene, hall, "") == ["Booked", "SlotFull"]


async def test_control_without_turns_who_came_later_gets_the_place(
    scene: Scene, hall: Hall
) -> None:
    assert await two_serve(scene, hall, "lease") == ["QUEUED", "Booked"]


async def lost_in_hand(scene: Scene, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all while requests are in hand: what was told then, and how many have places."""
    line = await stand(scene, front, size=2, places=2)
    slow, stage = scene.paused_worker("commit")
    await asyncio.to_thread(stage.wait_until_reached)
    scene.redis.flushall()
    told = await line.told()
    stage.go()
    assert slow.stop() == 0
    return told, len(scene.live(line.slot_id))


async def test_who_was_told_lost_is_not_booked_by_who_still_had_the_request(
    scene: Scene, hall: Hall
) -> None:
    assert await lost_in_hand(scene, hall.front) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_who_was_told_lost_is_booked(scene: Scene) -> None:
    assert await lost_in_hand(scene, scene.app("lost-mark")) == (["LOST", "LOST"], 2)


async def lost_and_restored(scene: Scene, front: AppProcess) -> tuple[list[str], int]:
    """Redis loses all, and comes back with what it had."""
    line = await stand(scene, front, size=2, places=2)
    copies = line.entries
    scene.redis.flushall()
    told = await line.told()
    line.put_back(copies)
    scene.worker()
    await line.until_empty()
    return told, len(scene.live(line.slot_id))


async def test_who_was_told_lost_is_not_booked_from_a_redis_that_was_restored(
    scene: Scene, hall: Hall
) -> None:
    assert await lost_and_restored(scene, hall.front) == (["LOST", "LOST"], 0)


async def test_control_without_a_mark_a_restored_redis_books_who_was_told_lost(
    scene: Scene,
) -> None:
    assert await lost_and_restored(scene, scene.app("lost-mark")) == (["LOST", "LOST"], 2)
