"""An edit of a whole series never reverts an acknowledged change of one of its slots."""

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
# The edit pauses before it writes its plan, or before it reads the slots for the plan.
POINTS = pytest.mark.parametrize("point", ["commit", "plan"])


@pytest.fixture
async def deployment(app: AppProcess, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment beside a complete process."""
    async with open_deployment(app.environment, log_dir, member_count=0) as deployment:
        yield deployment


class Moving:
    """A process that moves a series from nine to ten o'clock and waits at the pause point."""

    def __init__(self, deployment: Deployment, point: str, off: str = "") -> None:
        self.scene = deployment
        self.slow, self.stage = deployment.paused_app(point, off)

    async def begin(self, app: AppProcess) -> list[Json]:
        """Return the slots of the series as they were created."""
        made = await create_series(self.scene.organizer(app))
        slots: list[Json] = made["slots"]
        moving = update_series(self.scene.organizer(self.slow), slots[0], "ALL", **AT_TEN)
        self.move = asyncio.create_task(moving)
        await asyncio.to_thread(self.stage.wait_until_reached)
        return slots

    async def end(self) -> str:
        """Let the move continue and return its outcome."""
        self.stage.resume()
        return str((await self.move)["__typename"])

    def times(self, slot: Json) -> tuple[str, float]:
        """Return the start of a slot now and its length in hours."""
        stored = self.scene.slot_document(slot["id"])
        lasts = stored["end"] - stored["start"]
        return stored["start"].isoformat()[5:16], lasts.total_seconds() / 3600


async def moved_meanwhile(
    deployment: Deployment, app: AppProcess, point: str, off: str = ""
) -> tuple[str, list[tuple[str, float]]]:
    """Move the third slot elsewhere while the series moves by an hour; return the result."""
    moving = Moving(deployment, point, off)
    slots = await moving.begin(app)
    received = await update_series(deployment.organizer(app), slots[2], "THIS", **ANOTHER_DAY)
    assert received["__typename"] == "Slot"
    return await moving.end(), [moving.times(slot) for slot in slots]


@POINTS
async def test_a_slot_moved_meanwhile_is_moved_from_its_current_time(
    deployment: Deployment, app: AppProcess, point: str
) -> None:
    received, times = await moved_meanwhile(deployment, app, point)
    assert (received, times.pop(2)) == ("Slot", ("04-02T11:00", 1.5))
    assert times == [(start, 1) for start in (*MOVED[:2], MOVED[3])]


@pytest.mark.parametrize(("point", "off"), [("commit", "replanning"), ("plan", "plan-basis")])
async def test_control_a_plan_made_before_a_move_reverts_the_move(
    deployment: Deployment, app: AppProcess, point: str, off: str
) -> None:
    received, times = await moved_meanwhile(deployment, app, point, off)
    assert (received, times) == ("Slot", [(start, 1) for start in MOVED])


@POINTS
async def test_a_slot_cancelled_meanwhile_stays_cancelled_and_the_others_move(
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
async def test_a_slot_that_became_a_course_meanwhile_has_its_timetable_and_none_moves(
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
