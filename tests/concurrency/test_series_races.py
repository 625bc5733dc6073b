"""An edit of a whole series never takes back what was answered meanwhile of one of its slots."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json
from tests.support.clients.series import cancel_series, create_series, update_series

AT_TEN = {"startTime": "2031-03-17T10:00:00+01:00", "endTime": "2031-03-17T11:00:00+01:00"}
ANOTHER_DAY = {"startTime": "2031-04-02T12:00:00+02:00", "endTime": "2031-04-02T13:30:00+02:00"}
MOVED = ["03-17T09:00", "03-24T09:00", "03-31T08:00", "04-07T08:00"]
# Where an edit waits: with what it is about to write, or before it looks at action it writes over.
POINTS = pytest.mark.parametrize("point", ["commit", "plan"])


@pytest.fixture
async def deployment(app: AppProcess, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside a process that lacks nothing."""
    async with open_deployment(app.environment, log_dir, member_count=0) as deployment:
        yield deployment


class Moving:
    """A process where a series is being moved from nine to ten, and waits at the point."""

    def __init__(self, deployment: Deployment, point: str, off: str = "") -> None:
        self.scene = deployment
        self.slow, self.stage = deployment.paused_app(point, off)

    async def begin(self, app: AppProcess) -> list[Json]:
        """The slots of the series as they were created."""
        made = await create_series(self.scene.organizer(app))
        slots: list[Json] = made["slots"]
        moving = update_series(self.scene.organizer(self.slow), slots[0], "ALL", **AT_TEN)
        self.told = asyncio.create_task(moving)
        await asyncio.to_thread(self.stage.wait_until_reached)
        return slots

    async def end(self) -> str:
        """What the move is answered once it goes on."""
        self.stage.resume()
        return str((await self.told)["__typename"])

    def times(self, slot: Json) -> tuple[str, float]:
        """When a slot begins now, and how many hours it lasts."""
        truth = self.scene.slot_document(slot["id"])
        lasts = truth["end"] - truth["start"]
        return truth["start"].isoformat()[5:16], lasts.total_seconds() / 3600


async def moved_meanwhile(
    deployment: Deployment, app: AppProcess, point: str, off: str = ""
) -> tuple[str, list[tuple[str, float]]]:
    """While a series moves by an hour its third slot is moved elsewhere: the end of it all."""
    moving = Moving(deployment, point, off)
    slots = await moving.begin(app)
    received = await update_series(deployment.organizer(app), slots[2], "THIS", **ANOTHER_DAY)
    assert received["__typename"] == "Slot"
    return await moving.end(), [moving.times(slot) for slot in slots]


@POINTS
async def test_a_slot_that_was_moved_meanwhile_moves_from_where_it_is_by_then(
    deployment: Deployment, app: AppProcess, point: str
) -> None:
    received, times = await moved_meanwhile(deployment, app, point)
    assert (received, times.pop(2)) == ("Slot", ("04-02T11:00", 1.5))
    assert times == [(start, 1) for start in (*MOVED[:2], MOVED[3])]


@pytest.mark.parametrize(("point", "off"), [("commit", "replanning"), ("plan", "plan-basis")])
async def test_control_what_was_planned_before_it_was_moved_takes_the_move_back(
    deployment: Deployment, app: AppProcess, point: str, off: str
) -> None:
    received, times = await moved_meanwhile(deployment, app, point, off)
    assert (received, times) == ("Slot", [(start, 1) for start in MOVED])


@POINTS
async def test_a_slot_that_was_called_off_meanwhile_stays_so_and_the_others_move(
    deployment: Deployment, app: AppProcess, point: str
) -> None:
    moving = Moving(deployment, point)
    slots = await moving.begin(app)
    await cancel_series(deployment.organizer(app), slots[2], "THIS")
    assert await moving.end() == "Slot"
    expected = [(start, 1) for start in (*MOVED[:2], "03-31T07:00", MOVED[3])]
    assert [moving.times(slot) for slot in slots] == expected
    assert deployment.slot_document(slots[2]["id"])["status"] == "cancelled"


@POINTS
async def test_a_slot_that_became_a_course_meanwhile_keeps_its_timetable_and_none_moves(
    deployment: Deployment, app: AppProcess, point: str
) -> None:
    moving = Moving(deployment, point)
    slots = await moving.begin(app)
    weekly = [{"weekday": "MONDAY", "startTime": "18:00", "endTime": "19:00"}]
    course = {"first": "2031-03-31", "last": "2031-04-14", "weekly": weekly}
    await update_series(deployment.organizer(app), slots[2], "THIS", timetable=course)
    before = [deployment.slot_document(slot["id"]) for slot in slots]
    assert len(before[2]["meetings"]) == 3
    assert await moving.end() == "InvalidInput"
    assert [deployment.slot_document(slot["id"]) for slot in slots] == before
