"""Injects the faults of a schedule one after the other, and records when each was there."""

import asyncio
import random
import time
from dataclasses import dataclass

from bench.faults.history import HistoryWriter
from bench.faults.injection.schedule import PlannedFault, Schedule, faults_of
from bench.faults.topology.deployment import Deployment

FULL_DISK = "disk of the primary full"


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault from its cause to its end, and the time at which everything was healthy again.

    Times are seconds of the monotonic clock.
    """

    kind: str
    target: str
    started_at: float
    ended_at: float
    healthy_at: float


class Injector:
    """Runs the faults. `skipped` holds for each impossible kind the reason."""

    def __init__(self, deployment: Deployment, schedule: Schedule, history: HistoryWriter) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._history = history
        self._faults = faults_of(deployment.redis.kind)
        self.injected: list[InjectedFault] = []
        self.skipped: dict[str, str] = {}
        if (obstacle := deployment.members.full_disk_obstacle) is not None:
            self.skipped[FULL_DISK] = obstacle

    async def run(self, stop: asyncio.Event) -> None:
        """Inject faults until the campaign ends; raises SoakError if one does not heal."""
        while not stop.is_set():
            fault = self._schedule.next()
            if fault.kind in self.skipped:
                continue
            await _wait(stop, fault.pause_s)
            if not stop.is_set():
                await self._inject(fault)

    async def _inject(self, fault: PlannedFault) -> None:
        started_at = time.monotonic()
        target = await self._faults[fault.kind](
            self._deployment, random.Random(fault.seed), fault.seconds
        )
        ended_at = time.monotonic()
        await self._deployment.members.wait_until_healthy()
        await self._deployment.redis.wait_until_healthy()
        injected = InjectedFault(fault.kind, target, started_at, ended_at, time.monotonic())
        self.injected.append(injected)
        self._history.write_fault(fault.kind, target, started_at, ended_at)


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
