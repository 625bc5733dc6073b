"""Everything that a campaign runs: MongoDB, Redis, two apps, a worker, and the links between."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.faults.topology.apps import SERVE, WORKER, FaultApp
from bench.faults.topology.disks import clear_disk
from bench.faults.topology.links import Links
from bench.faults.topology.mail_server import FaultMailServer
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
    worker: FaultApp
    mail_server: FaultMailServer
    secret: str

    @property
    def processes(self) -> list[FaultApp]:
        """Return the apps and the worker."""
        return [*self.apps, self.worker]

    async def wait_until_healthy(self) -> None:
        """Wait until all servers serve and follow their primary or master; raises CampaignError."""
        await self.members.wait_until_healthy()
        await self.redis.wait_until_healthy()

    async def repair(self) -> None:
        """End everything that a fault did, and start what does not run; raises CampaignError."""
        await self.links.heal()
        for member in self.members.all:
            clear_disk(member.folder)
            member.server.resume()
            if not member.server.is_running:
                await self.members.start_member(member)
        await self.redis.repair()
        for process in self.processes:
            process.set_clock(0.0)
            process.resume()
            if not process.is_up:
                process.kill()
                await process.start()
        await self.wait_until_healthy()


@asynccontextmanager
async def open_deployment(
    plan: DeploymentPlan, folder: Path, mails: Path
) -> AsyncIterator[Deployment]:
    """Start everything, and kill it on leaving; raises CampaignError.

    The mail server records what it takes in the file `mails`.
    """
    links = Links()
    mail_server = FaultMailServer(links, mails)
    members = Members(folder, links, plan.election_timeout_ms, plan.mount_obstacle)
    redis: RedisServers | None = None
    processes: list[FaultApp] = []
    try:
        await links.start()
        await mail_server.start()
        await members.start()
        redis = await start_redis(plan.redis_kind, folder, links)
        secret = secrets.token_hex(32)
        environment = {
            "SLOTLOCK_MONGO_URL": members.url,
            "SLOTLOCK_REDIS_URL": redis.url,
            "SLOTLOCK_SECRET_KEY": secret,
            "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
            "SLOTLOCK_GRACEFUL_STOP_S": "5",
            "SLOTLOCK_SMTP_URL": mail_server.url,
            "SLOTLOCK_MAIL_FROM": "noreply@slotlock.test",
        }
        module = "slotlock"
        if plan.control is not None:
            environment["FAULTS_CONTROL"], module = plan.control, CONTROL_MODULE
        names = {**{f"app{index}": SERVE for index in range(APPS)}, "worker": WORKER}
        processes = [
            FaultApp(name, command, environment, folder / f"{name}.log", links, module)
            for name, command in names.items()
        ]
        await asyncio.gather(*(process.start() for process in processes))
        *apps, worker = processes
        yield Deployment(links, members, redis, apps, worker, mail_server, secret)
    finally:
        for process in processes:
            process.kill()
        if redis is not None:
            redis.kill()
        members.kill()
        mail_server.stop()
        await links.stop()
