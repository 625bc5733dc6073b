"""Requests that harm who serves them, and what operators do about those."""

import os
import subprocess
import sys

import httpx

from tests.support.desk import wait_for
from tests.support.processes import AppProcess
from tests.support.queue_scenes import Hall, InLine
from tests.support.stage import Scene

POISON = 1


async def with_a_poisoned_one(scene: Scene, front: AppProcess, size: int = 4) -> InLine:
    """People in line with places for all, of whom the second wants a hold: that is the poison."""
    slot_id = await scene.slot(front, capacity=size)
    line = InLine(scene, front, slot_id, [], [], [])
    for number, person in enumerate(scene.people(front, size)):
        await line.arrive(person, hold=number == POISON)
    return line


def innocent(line: InLine) -> list[int]:
    """All but the poisoned one."""
    return [number for number in range(len(line.people)) if number != POISON]


async def served_but_for_the_poisoned_one(line: InLine) -> None:
    """Wait until the others have their places, and the poisoned one is set aside."""
    await line.until("ANSWERED", *innocent(line))
    await line.until("SET_ASIDE", POISON)
    told = await line.look()
    assert {told[number]["outcome"]["__typename"] for number in innocent(line)} == {"Booked"}
    line.assert_roster(told)


async def until_counted(hall: Hall, partition: int, count: int) -> None:
    """Wait until the metric says that so many are set aside in a partition."""
    figure = f'slotlock_queue_set_aside{{partition="{partition}"}} {float(count)}'

    async def look() -> dict[str, str]:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            return {"metrics": (await http.get(hall.front.url + "/metrics")).text}

    await wait_for(look, lambda seen: figure in seen["metrics"].splitlines(), figure)


def operator(hall: Hall, *arguments: str, code: int = 0) -> str:
    """What `slotlock queue` prints, run as an operator would."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}
    command = [sys.executable, "-m", "slotlock", "queue", *arguments]
    ran = subprocess.run(
        command, env={**own, **hall.environment}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran
    return ran.stdout or ran.stderr


def names_set_aside(shown: str) -> list[str]:
    """The names of what is set aside, in what `slotlock queue show` printed."""
    return [line.split("\t")[0] for line in shown.splitlines() if "/" in line.split("\t")[0]]
