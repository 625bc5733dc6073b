"""Who serves the admission queue dies or sleeps, and each request is handled once all the same."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from slotlock.stores.queue_partitions import SERVER, SUSPECT_AFTER
from slotlock.stores.queue_scripts import GROUP, keys
from tests.support.client import Json
from tests.support.desk import wait_for
from tests.support.queue_scenes import Hall, InLine, heard_the_end, open_hall, stand, watching
from tests.support.stage import Scene, scene_on

# Before the decision, before it is written, before refusals are kept, before it is acknowledged.
STEPS = ["taken", "commit", "granted", "kept"]
THREE_OF_SIX = ["Booked"] * 3 + ["SlotFull"] * 3


@pytest.fixture(scope="module")
def hall(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_deaths") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=12) as scene:
        scene.redis.flushall()
        yield scene


async def killed(line: InLine, step: str) -> None:
    """A process takes the line, and is killed at a step."""
    doomed, stage = line.scene.paused_worker(step)
    await asyncio.to_thread(stage.wait_until_reached)
    doomed.kill()
    line.let_locks_run_out()


@pytest.mark.parametrize("step", STEPS)
async def test_whoever_dies_at_a_step_each_request_has_one_outcome_in_order_of_arrival(
    scene: Scene, hall: Hall, step: str
) -> None:
    line = await stand(scene, hall.front, size=6, places=3)
    async with watching(line, 0) as first, watching(line, 5) as last:
        await killed(line, step)
        scene.worker()
        await line.assert_served(*THREE_OF_SIX)
        await line.assert_in_order_of_arrival()
        told = [await heard_the_end(each, "ANSWERED") for each in (first, last)]
    assert [ticket["outcome"]["__typename"] for ticket in told] == ["Booked", "SlotFull"]
    assert line.entries == []


async def test_however_many_die_one_after_the_other_each_request_has_one_outcome(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=6, places=3)
    for step in STEPS:
        await killed(line, step)
    scene.worker()
    await line.assert_served(*THREE_OF_SIX)


async def test_who_dies_without_a_chance_to_say_so_is_replaced(scene: Scene, hall: Hall) -> None:
    line = await stand(scene, hall.front, size=6, places=3)
    doomed, stage = scene.paused_worker("taken")
    await asyncio.to_thread(stage.wait_until_reached)
    scene.worker()
    doomed.kill()
    await line.assert_served(*THREE_OF_SIX)


async def test_places_go_in_order_of_arrival_while_servers_come_and_die(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=0, places=12)
    workers = [scene.worker()]
    for number, person in enumerate(scene.people(hall.front, 12), start=1):
        await line.arrive(person)
        if number % 4 == 0:
            workers.append(scene.worker())
            workers.pop(0).kill()
    await line.assert_served(*["Booked"] * 12)
    await line.assert_in_order_of_arrival()


@pytest.mark.parametrize("step", STEPS)
async def test_who_slept_longer_than_their_turn_changes_nothing_when_they_wake(
    scene: Scene, hall: Hall, step: str
) -> None:
    line = await stand(scene, hall.front, size=6, places=3)
    sleeper, stage = scene.paused_worker(step)
    await asyncio.to_thread(stage.wait_until_reached)
    sleeper.process.send_signal(signal.SIGSTOP)
    line.let_locks_run_out()
    scene.worker()
    await line.assert_served(*THREE_OF_SIX)
    await line.cancel(0)
    before = await line.look()
    stage.go()
    sleeper.process.send_signal(signal.SIGCONT)
    assert sleeper.stop() == 0  # it has finished what it had begun
    assert await line.look() == before
    assert len(scene.live(line.slot_id)) == 2


async def test_who_lost_their_turn_takes_nothing_from_who_has_it(scene: Scene, hall: Hall) -> None:
    line = await stand(scene, hall.front, size=2, places=2)
    await killed(line, "taken")
    late, stage = scene.paused_worker("overslept")
    await asyncio.to_thread(stage.wait_until_reached)
    line.let_locks_run_out()
    _, present = scene.paused_worker("taken")
    await asyncio.to_thread(present.wait_until_reached)
    stage.go()

    async def waiting_for_a_turn() -> Json:
        return {"count": scene.redis.zcard(line.turn_key("line"))}

    await wait_for(waiting_for_a_turn, lambda seen: seen["count"], "they stand in line again")
    assert await line.told() == ["QUEUED", "QUEUED"]
    present.go()
    await line.assert_served("Booked", "Booked")
    assert late.process.poll() is None


async def test_a_request_that_is_delivered_many_times_has_one_outcome_and_one_booking(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=6, places=3)
    line.put_back(line.entries * 3)
    scene.worker()
    await line.assert_served(*THREE_OF_SIX)
    assert len(await scene.organiser(hall.front).history(line.slot_id)) == 0


async def test_while_somebody_is_served_nobody_behind_them_is(scene: Scene, hall: Hall) -> None:
    line = await stand(scene, hall.front, size=1, places=1)
    slow, stage = scene.paused_worker("taken")
    await asyncio.to_thread(stage.wait_until_reached)
    scene.worker()
    await line.arrive(scene.person(hall.front, 1))
    stage.go()
    await line.assert_served("Booked", "SlotFull")
    assert slow.process.poll() is None


async def test_what_is_gone_from_the_line_hides_nobody_who_was_taken_after_it(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=3, places=1)
    stream, redis = keys(line.partition)[0], scene.redis
    found: Any = redis.xrange(stream, count=1)
    redis.xgroup_create(stream, GROUP, "0")
    redis.xreadgroup(GROUP, SERVER, {stream: ">"}, count=2)
    for _ in range(SUSPECT_AFTER):  # as those who died did, so that they are taken one by one
        redis.xreadgroup(GROUP, SERVER, {stream: "0"})
    redis.xdel(stream, found[0][0])
    scene.worker()
    await line.until("ANSWERED", 1, 2)
    assert await line.told() == ["LOST", "Booked", "SlotFull"]
