"""Injects the faults of a schedule one after the other, and records when each was there."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.faults.clients.plan import sleep_until_set
from bench.faults.history import HistoryWriter
from bench.faults.injection.mongo_faults import FULL_DISK
from bench.faults.injection.schedule import PlannedFault, Schedule, faults_of
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.members import Election
from bench.faults.topology.servers import CampaignError


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A fault from its cause to its end, and the time at which everything was healthy again.

    `election` is that of the primary that was there at the end, if it was elected since the start.
    Times are seconds of the monotonic clock.
    """

    kind: str
    target: str
    started_at: float
    ended_at: float
    healthy_at: float
    election: Election | None = None


class Injector:
    """Runs the faults, and calls `on_begin` just before each.

    `skipped` has the reason for each kind that this machine cannot have.
    """

    def __init__(
        self,
        deployment: Deployment,
        schedule: Schedule,
        history: HistoryWriter,
        on_begin: Callable[[], None],
    ) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._history = history
        self._on_begin = on_begin
        self._faults = faults_of(deployment.redis.kind)
        self.injected: list[InjectedFault] = []
        self.skipped: dict[str, str] = {}
        if (obstacle := deployment.members.full_disk_obstacle) is not None:
            self._skip(FULL_DISK, obstacle)

    def _skip(self, kind: str, reason: str) -> None:
        self.skipped[kind] = reason
        self._schedule.remove(kind)
        print(f"skipped: {kind}, because {reason}", flush=True)

    async def run(self, stop: asyncio.Event) -> None:
        """Inject faults until the campaign ends; raises CampaignError if a repair fails, too."""
        while self._schedule.kinds and not stop.is_set():
            fault = self._schedule.next()
            if await sleep_until_set(stop, fault.pause_s):
                await self._inject(fault)
        await stop.wait()

    async def _inject(self, fault: PlannedFault) -> None:
        self._on_begin()
        started_at = ended_at = healthy_at = time.monotonic()
        inject, target = self._faults[fault.kind], ""
        try:
            target = await inject(self._deployment, random.Random(fault.seed), fault.seconds)
            ended_at = time.monotonic()
            await self._deployment.wait_until_healthy()
            healthy_at = time.monotonic()
            election = await self._deployment.members.last_election()
            if election is not None and election.elected_at < started_at:
                election = None
            self.injected.append(
                InjectedFault(fault.kind, target, started_at, ended_at, healthy_at, election)
            )
        except CampaignError as error:
            # A slow machine is no defect of slotlock: the gaps of this fault do not count.
            self._skip(fault.kind, f"not healthy in time: {error}")
            await self._deployment.repair()
            ended_at = healthy_at = time.monotonic()
        self._history.write_fault(fault.kind, target, started_at, ended_at, healthy_at)
