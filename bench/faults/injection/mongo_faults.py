"""Faults of MongoDB's members: dead, frozen, stepped down, cut off, late, or out of space."""

import asyncio
import random

from bench.faults.history import HOLDS_END
from bench.faults.injection.steps import Fault, freeze, separate
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.disks import clear_disk, fill_disk
from bench.faults.topology.links import LOST, REFUSED, LinkState
from bench.faults.topology.members import Member

FULL_DISK = "disk of the primary full"
ALL_KILLED = "mongod all members killed"


async def _kill(deployment: Deployment, member: Member, seconds: float) -> str:
    member.server.kill()
    await asyncio.sleep(seconds)
    await deployment.members.start_member(member)
    return member.name


async def kill_primary(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Kill the primary, and start it again after the time."""
    primary, _ = await deployment.members.primary_and_others()
    return await _kill(deployment, primary, seconds)


async def kill_late_primary(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Kill the primary while the secondaries lack its latest writes."""
    primary, others = await deployment.members.primary_and_others()
    state = LinkState(delay_s=rng.uniform(1.0, 2.5))
    await deployment.links.disturb([(primary.name, member.name) for member in others], state)
    await asyncio.sleep(rng.uniform(1.0, 2.0))
    primary.server.kill()
    await deployment.links.heal()
    return await _kill(deployment, primary, seconds)


async def kill_all(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Kill all members, which must not lose acknowledged writes, and start them again."""
    for member in deployment.members.all:
        member.server.kill()
    await asyncio.sleep(seconds)
    await asyncio.gather(*map(deployment.members.start_member, deployment.members.all))
    return "all members"


async def kill_secondary(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Kill a secondary, and start it again after the time."""
    _, others = await deployment.members.primary_and_others()
    return await _kill(deployment, rng.choice(others), seconds)


async def freeze_primary(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Freeze the primary."""
    primary, _ = await deployment.members.primary_and_others()
    await freeze([primary.server], seconds)
    return primary.name


async def freeze_secondary(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Freeze a secondary, which leaves a majority."""
    _, others = await deployment.members.primary_and_others()
    member = rng.choice(others)
    await freeze([member.server], seconds)
    return member.name


async def freeze_secondaries(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Freeze both secondaries, so that no write is acknowledged."""
    primary, others = await deployment.members.primary_and_others()
    await freeze([member.server for member in others], seconds)
    return f"all but {primary.name}"


async def step_down(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Let the primary step down."""
    await deployment.members.step_down(max(int(seconds), 1))
    return "primary"


async def isolate_primary(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Cut the primary off from the other members; all apps still reach all of them."""
    primary, others = await deployment.members.primary_and_others()
    state = rng.choice((LOST, REFUSED))
    await separate(deployment, [primary.name], [each.name for each in others], state, seconds)
    return primary.name


async def isolate_primary_with_app(
    deployment: Deployment, rng: random.Random, seconds: float
) -> str:
    """Cut the primary and an app off from the other members, apps and workers."""
    primary, others = await deployment.members.primary_and_others()
    app = rng.choice(deployment.apps)
    majority = [member.name for member in others]
    majority += [each.name for each in deployment.processes if each is not app]
    state = rng.choice((LOST, REFUSED))
    await separate(deployment, [primary.name, app.name], majority, state, seconds)
    return f"{primary.name} with {app.name}"


async def isolate_app(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Cut an app off from all members of MongoDB."""
    app, state = rng.choice(deployment.apps), rng.choice((LOST, REFUSED))
    names = [member.name for member in deployment.members.all]
    await separate(deployment, [app.name], names, state, seconds)
    return app.name


async def isolate_worker(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Cut the worker off from all members of MongoDB."""
    worker, state = deployment.worker, rng.choice((LOST, REFUSED))
    names = [member.name for member in deployment.members.all]
    await separate(deployment, [worker.name], names, state, seconds)
    return worker.name


async def separate_all_members(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Cut all members off from each other, so that there is no majority."""
    names = [member.name for member in deployment.members.all]
    await separate(deployment, names, names, rng.choice((LOST, REFUSED)), seconds)
    return "all members"


async def delay_replication(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Delay what the primary sends to both secondaries."""
    primary, others = await deployment.members.primary_and_others()
    state = LinkState(delay_s=rng.uniform(0.3, 2.0))
    await deployment.links.disturb([(primary.name, member.name) for member in others], state)
    await asyncio.sleep(seconds)
    await deployment.links.heal()
    return f"{primary.name} by {state.delay_s:.1f} s"


async def slow_links(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Make all links between apps and members slow and narrow."""
    state = LinkState(delay_s=rng.uniform(0.01, 0.15), bytes_per_s=rng.choice((0.0, 200_000.0)))
    processes = [process.name for process in deployment.processes]
    members = [member.name for member in deployment.members.all]
    await separate(deployment, processes, members, state, seconds)
    return f"{state.delay_s * 1000:.0f} ms, {state.bytes_per_s:.0f} bytes/s"


async def fill_primary_disk(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Let the disk of the primary run full, which ends it, and start it again with space."""
    primary, _ = await deployment.members.primary_and_others()
    await asyncio.to_thread(fill_disk, primary.folder)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(clear_disk, primary.folder)
    primary.server.kill()
    await deployment.members.start_member(primary)
    return primary.name


async def end_holds(deployment: Deployment, rng: random.Random, _seconds: float) -> str:
    """End most holds now, as if the clock had jumped."""
    return f"{await asyncio.to_thread(deployment.members.end_holds, rng)} holds"


FAULTS: dict[str, Fault] = {
    "mongod primary killed": kill_primary,
    "mongod primary killed during lag": kill_late_primary,
    ALL_KILLED: kill_all,
    "mongod secondary killed": kill_secondary,
    "mongod primary frozen": freeze_primary,
    "mongod secondary frozen": freeze_secondary,
    "mongod both secondaries frozen": freeze_secondaries,
    "mongod primary steps down": step_down,
    "partition: primary alone": isolate_primary,
    "partition: primary with an app": isolate_primary_with_app,
    "partition: app without MongoDB": isolate_app,
    "partition: worker without MongoDB": isolate_worker,
    "partition: no majority": separate_all_members,
    "replication lag": delay_replication,
    "slow links to MongoDB": slow_links,
    FULL_DISK: fill_primary_disk,
    HOLDS_END: end_holds,
}
