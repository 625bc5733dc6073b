"""What cannot be served is set aside, and whoever stands beside it is served."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from tests.support.campaigns import campaign
from tests.support.desk import wait_for
from tests.support.poison import (
    POISON,
    innocent,
    served_but_for_the_poisoned_one,
    until_counted,
    with_a_poisoned_one,
)
from tests.support.processes import AppProcess
from tests.support.queue_scenes import Hall, InLine, heard, open_hall, stand, watching
from tests.support.stage import Scene, scene_on

NO_REQUESTS: list[dict[Any, Any]] = [
    {"x": "y"},
    {b"\xff": b"\xfe", b"": b""},
    {"slot": "nobody's", "user": "nobody", "by": "nobody", "key": "none", "question": "none"},
    {"ms": "9" * 30},
    {"ms": "-1"},
    {"ms": "\u0663"},
    {f"field {number}": "x" for number in range(5_000)},
]


@pytest.fixture(scope="module")
def hall(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_poison") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=4) as scene:
        scene.redis.flushall()
        yield scene


async def test_what_is_no_request_is_set_aside_and_those_in_line_are_served(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=2, places=3)
    line.put_back(NO_REQUESTS)
    await line.arrive(scene.person(hall.front, 2))
    scene.worker()
    await line.assert_served("Booked", "Booked", "Booked")
    await line.until_empty()
    await until_counted(hall, line.partition, len(NO_REQUESTS))


async def test_a_request_that_always_fails_is_set_aside_and_its_neighbours_are_served(
    scene: Scene, hall: Hall
) -> None:
    line = await with_a_poisoned_one(scene, hall.front)
    async with watching(line, POISON) as watcher:
        scene.worker("holds-raise")
        await served_but_for_the_poisoned_one(line)
        await heard(watcher, "SET_ASIDE")
    assert (await line.ask_again(POISON, hold=True))["status"] == "SET_ASIDE"
    await until_counted(hall, line.partition, 1)


async def replaced_whenever_they_die(line: InLine, off: str) -> int:
    """The poisoned one is the death of all who serve them, until they are set aside: how many."""

    async def look() -> dict[str, Any]:
        return {"told": (await line.told())[POISON], "code": worker.process.poll()}

    for deaths in range(20):
        worker = line.scene.worker(off)
        seen = await wait_for(
            look, lambda seen: seen["code"] is not None or seen["told"] != "QUEUED", "an end"
        )
        if seen["told"] != "QUEUED":
            return deaths
        line.let_locks_run_out()
    raise AssertionError("they die for ever")


async def test_a_request_that_kills_who_serves_it_is_set_aside_and_its_neighbours_are_served(
    scene: Scene, hall: Hall
) -> None:
    line = await with_a_poisoned_one(scene, hall.front)
    async with watching(line, POISON) as watcher:
        assert await replaced_whenever_they_die(line, "holds-kill") == 6
        await served_but_for_the_poisoned_one(line)
        await heard(watcher, "SET_ASIDE")
    await until_counted(hall, line.partition, 1)


async def test_control_served_together_for_ever_a_killer_takes_its_neighbours_with_it(
    scene: Scene, hall: Hall
) -> None:
    line = await with_a_poisoned_one(scene, hall.front)
    assert await replaced_whenever_they_die(line, "holds-kill suspects") == 6
    await line.until("SET_ASIDE", *innocent(line))
    assert scene.live(line.slot_id) == set()


async def with_a_page_that_is_turned(scene: Scene, front: AppProcess) -> InLine:
    """People in line in a campaign that looks at their pages, with places for all."""
    chosen = await campaign(scene.organiser(front), maxBookings=2)
    slot_id = await scene.slot(front, capacity=4, campaignId=chosen)
    line = InLine(scene, front, slot_id, [], [], [])
    for person in scene.people(front, 4):
        await line.arrive(person)
    return line


async def test_one_whose_page_others_turn_holds_up_nobody_behind_them(
    scene: Scene, hall: Hall
) -> None:
    line = await with_a_page_that_is_turned(scene, hall.front)
    scene.worker("page-turned")
    await line.assert_served(*["Booked"] * 4)
    await line.assert_in_order_of_arrival()


async def test_control_served_as_one_batch_for_ever_all_wait_for_the_one_page(
    scene: Scene, hall: Hall
) -> None:
    line = await with_a_page_that_is_turned(scene, hall.front)
    _, tried = scene.paused_worker("retried", "page-turned smaller-batches")
    await asyncio.to_thread(tried.wait_until_reached)
    assert await line.told() == ["QUEUED"] * 4
