"""Faults of apps and workers: killed, stopped, frozen, or with a wrong clock."""

import asyncio
import random
from collections.abc import Sequence

from bench.faults.injection.steps import Fault, freeze
from bench.faults.topology.apps import FaultApp
from bench.faults.topology.deployment import Deployment

CLOCK_STEPS = 6


async def _kill(process: FaultApp, seconds: float) -> str:
    process.kill()
    await asyncio.sleep(seconds)
    await process.start()
    return process.name


async def kill_app(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Kill an app, and start it again after half of the time."""
    return await _kill(rng.choice(deployment.apps), seconds / 2)


async def kill_worker(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Kill the worker, and start it again after half of the time."""
    return await _kill(deployment.worker, seconds / 2)


async def _stop(process: FaultApp) -> str:
    await process.stop()
    await process.start()
    return process.name


async def stop_app(deployment: Deployment, rng: random.Random, _seconds: float) -> str:
    """Stop an app as an upgrade does, and start it again."""
    return await _stop(rng.choice(deployment.apps))


async def stop_worker(deployment: Deployment, _rng: random.Random, _seconds: float) -> str:
    """Stop the worker as an upgrade does, and start it again."""
    return await _stop(deployment.worker)


async def freeze_app(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Freeze an app."""
    app = rng.choice(deployment.apps)
    await freeze([app], seconds)
    return app.name


async def freeze_worker(deployment: Deployment, _rng: random.Random, seconds: float) -> str:
    """Freeze the worker, mostly for longer than its lease lasts."""
    await freeze([deployment.worker], seconds)
    return deployment.worker.name


async def _skew(process: FaultApp, offsets: Sequence[float], seconds: float) -> str:
    try:
        for offset_s in offsets:
            process.set_clock(offset_s)
            await asyncio.sleep(seconds / len(offsets))
    finally:
        process.set_clock(0.0)
    return f"{process.name} by {', '.join(f'{offset:+.1f} s' for offset in offsets)}"


async def skew_slightly(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Set the clock of a process 5 s ahead or behind."""
    return await _skew(rng.choice(deployment.processes), [rng.choice((-5.0, 5.0))], seconds)


async def skew_strongly(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Set the clock of a process 60 s ahead or behind."""
    return await _skew(rng.choice(deployment.processes), [rng.choice((-60.0, 60.0))], seconds)


async def step_clock(deployment: Deployment, rng: random.Random, seconds: float) -> str:
    """Let the clock of a process jump back and forth."""
    offsets = [rng.uniform(-10, 10) for _ in range(CLOCK_STEPS)]
    return await _skew(rng.choice(deployment.processes), offsets, seconds)


FAULTS: dict[str, Fault] = {
    "app killed": kill_app,
    "app stopped": stop_app,
    "app frozen": freeze_app,
    "worker killed": kill_worker,
    "worker stopped": stop_worker,
    "worker frozen": freeze_worker,
    "clock skewed by 5 s": skew_slightly,
    "clock skewed by 60 s": skew_strongly,
    "clock stepped": step_clock,
}
