"""Operators look at what the queue set aside, and put it back in line or give it up."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from slotlock.api.embedded import Servers
from tests.support.poison import (
    POISON,
    names_set_aside,
    operator,
    served_but_for_the_poisoned_one,
    until_counted,
    with_a_poisoned_one,
)
from tests.support.queue_scenes import (
    Hall,
    InLine,
    heard,
    heard_the_end,
    open_hall,
    watching,
)
from tests.support.stage import Scene, scene_on


@pytest.fixture(scope="module")
def hall(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_operators") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=4) as scene:
        scene.redis.flushall()
        yield scene


async def set_aside(scene: Scene, hall: Hall) -> InLine:
    """A line of which one could not be served; who tried is gone."""
    line = await with_a_poisoned_one(scene, hall.front)
    worker = scene.worker("holds-raise")
    await served_but_for_the_poisoned_one(line)
    worker.kill()
    line.let_locks_run_out()
    return line


async def asked(hall: Hall, *arguments: str, code: int = 0) -> str:
    """What an operator reads."""
    return await asyncio.to_thread(operator, hall, *arguments, code=code)


async def test_what_is_in_line_and_what_was_set_aside_is_shown_with_the_reason(
    scene: Scene, hall: Hall
) -> None:
    line = await set_aside(scene, hall)
    shown = (await asked(hall, "show")).splitlines()
    assert shown[0] == "partition\tin line\tset aside"
    assert shown[1 : 1 + 5] == [f"{n}\t0\t{int(n == line.partition)}" for n in range(5)]
    name, _, whose, reason = shown[6].split("\t")
    assert name.startswith(f"{line.partition}/")
    assert whose.startswith(f"slot {line.slot_id[-24:]} for ")
    assert reason == "RuntimeError: there is something about this one"


@pytest.mark.parametrize("by_name", [True, False])
async def test_what_is_put_back_in_line_is_answered_once_it_can_be(
    scene: Scene, hall: Hall, by_name: bool
) -> None:
    line = await set_aside(scene, hall)
    async with watching(line, POISON) as watcher:
        await heard(watcher, "SET_ASIDE")
        names = names_set_aside(await asked(hall, "show")) if by_name else []
        assert await asked(hall, "replay", *names) == "put back in line: 1\n"
        assert (await line.look())[POISON]["place"] == 1
        scene.worker()
        told = await heard_the_end(watcher, "ANSWERED")
    assert told["outcome"]["__typename"] == "Booked"
    assert await line.told() == ["Booked"] * 4
    line.assert_roster(await line.look())
    await until_counted(hall, line.partition, 0)


async def test_what_is_put_back_and_fails_again_is_set_aside_again(
    scene: Scene, hall: Hall
) -> None:
    line = await set_aside(scene, hall)
    await asked(hall, "replay")
    scene.worker("holds-raise")
    await line.until("SET_ASIDE", POISON)
    await until_counted(hall, line.partition, 1)


async def test_what_is_given_up_is_lost_and_its_key_may_be_used_again(
    scene: Scene, hall: Hall
) -> None:
    line = await set_aside(scene, hall)
    async with watching(line, POISON) as watcher:
        await heard(watcher, "SET_ASIDE")
        (name,) = names_set_aside(await asked(hall, "show"))
        assert await asked(hall, "discard", name) == f"discarded {name}\n"
        await heard_the_end(watcher, "LOST")
    assert (await line.told())[POISON] == "LOST"
    await until_counted(hall, line.partition, 0)
    again = await line.ask_again(POISON, hold=True)
    scene.worker()
    line.tickets[POISON] = again["id"]
    await line.until("ANSWERED")
    assert await line.told() == ["Booked"] * 4


async def test_what_is_not_set_aside_is_neither_put_back_nor_given_up(
    scene: Scene, hall: Hall
) -> None:
    line = await set_aside(scene, hall)
    for act in ("replay", "discard"):
        told = await asked(hall, act, "0/0-1", code=1)
        assert told.startswith("slotlock: 0/0-1 is no")
    assert (await line.told())[POISON] == "SET_ASIDE"


async def test_what_is_no_request_is_shown_and_can_only_be_given_up(
    scene: Scene, hall: Hall
) -> None:
    scene.redis.xadd("slotlock:{queue:0}:requests", {"x": "y"})
    scene.worker()
    await until_counted(hall, 0, 1)
    shown = await asked(hall, "show")
    (name,) = names_set_aside(shown)
    assert "it is no request of slotlock's" in shown
    assert await asked(hall, "replay") == (
        f"put back in line: 0\n{name} holds no request: discard it\n"
    )
    await asked(hall, "replay", name, code=1)
    await asked(hall, "discard", name)
    assert names_set_aside(await asked(hall, "show")) == []
