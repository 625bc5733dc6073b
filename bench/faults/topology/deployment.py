"""Everything that a campaign runs: MongoDB, Redis, two apps, a worker, and the links between."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.faults.topology.apps import FaultApp, FaultWorker, set_clock
from bench.faults.topology.disks import clear_disk
from bench.faults.topology.links import Links
from bench.faults.topology.members import Members
from bench.faults.topology.redis_servers import RedisServers, start_redis

APPS = 2
CONTROL_MODULE = "bench.faults.controls.app"


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The settings of a deployment.

    `control` names the guard that the apps run without, or is None. `mount_obstacle` is why no
    small disks can be mounted here, or None.
    """

    redis_kind: str
    election_timeout_ms: int
    control: str | None
    mount_obstacle: str | None


@dataclass(slots=True, eq=False)
class Deployment:
    """The running servers and processes of a campaign."""

    links: Links
    members: Members
    redis: RedisServers
    apps: list[FaultApp]
    worker: FaultWorker
    secret: str

    @property
    def processes(self) -> list[FaultApp | FaultWorker]:
        """Return the apps and the worker."""
        return [*self.apps, self.worker]

    async def wait_until_healthy(self) -> None:
        """Wait until all servers serve and follow their primary or master; raises SoakError."""
        await self.members.wait_until_healthy()
        await self.redis.wait_until_healthy()

    async def repair(self) -> None:
        """End everything that a fault did, and start what does not run; raises SoakError."""
        await self.links.heal()
        for member in self.members.all:
            clear_disk(member.folder)
            member.server.resume()
            if not member.server.is_running:
                await self.members.start_member(member)
        await self.redis.repair()
        for process in self.processes:
            set_clock(process, 0.0)
            process.resume()
            if not process.is_up:
                process.kill()
                await process.start()
        await self.wait_until_healthy()


@asynccontextmanager
async def open_deployment(plan: DeploymentPlan, folder: Path) -> AsyncIterator[Deployment]:
    """Start everything, and kill it on leaving; raises SoakError."""
    links = Links()
    members = Members(folder, links, plan.election_timeout_ms, plan.mount_obstacle)
    redis: RedisServers | None = None
    processes: list[FaultApp | FaultWorker] = []
    try:
        await links.start()
        await members.start()
        redis = await start_redis(plan.redis_kind, folder, links)
        secret = secrets.token_hex(32)
        environment = {
            "SLOTLOCK_MONGO_URL": members.url,
            "SLOTLOCK_REDIS_URL": redis.url,
            "SLOTLOCK_SECRET_KEY": secret,
            "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
            "SLOTLOCK_GRACEFUL_STOP_S": "5",
        }
        module = "slotlock"
        if plan.control is not None:
            environment["FAULTS_CONTROL"], module = plan.control, CONTROL_MODULE
        apps = [
            FaultApp(index, environment, folder / f"app{index}.log", links=links, module=module)
            for index in range(APPS)
        ]
        worker = FaultWorker(APPS, environment, folder / "worker.log", links=links, module=module)
        processes = [*apps, worker]
        await asyncio.gather(*(process.start() for process in processes))
        yield Deployment(links, members, redis, apps, worker, secret)
    finally:
        for process in processes:
            process.kill()
        if redis is not None:
            redis.kill()
        members.kill()
        await links.stop()
