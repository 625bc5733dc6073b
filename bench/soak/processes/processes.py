"""What happens to the apps and to the worker: they are killed, told to stop, and hang."""

import asyncio
import random

from bench.soak.clients.sending import schedule_recent_resends
from bench.soak.processes.apps import SoakApp
from bench.soak.world import World


def _pick_idle_app(world: World, rng: random.Random) -> SoakApp | None:
    # One of them is left to serve.
    idle = [app for app in world.apps if app.is_up and not app.is_busy]
    return rng.choice(idle) if len(idle) > 1 else None


async def kill_app(world: World, rng: random.Random) -> None:
    """A process dies on whatever line it is, and another takes its place."""
    if (app := _pick_idle_app(world, rng)) is not None:
        await _kill(world, app, rng)


async def kill_worker(world: World, rng: random.Random) -> None:
    """The worker dies with what it has taken from the line."""
    if not world.worker.is_busy:
        await _kill(world, world.worker, rng)


async def _kill(world: World, app: SoakApp, rng: random.Random) -> None:
    app.is_busy = True
    try:
        app.kill()
        schedule_recent_resends(world)
        await asyncio.sleep(rng.uniform(0, 2))
        await app.start()
    finally:
        app.is_busy = False


async def stop_app(world: World, rng: random.Random) -> None:
    """A process is told to stop, and does so in order."""
    if (app := _pick_idle_app(world, rng)) is not None:
        await _stop(world, app)


async def stop_worker(world: World, _rng: random.Random) -> None:
    """The worker is told to stop."""
    if not world.worker.is_busy:
        await _stop(world, world.worker)


async def _stop(world: World, app: SoakApp) -> None:
    app.is_busy = True
    try:
        code = await app.stop()
        if code != 0:
            world.run_log.record_violation("bad exit", f"{app.name} ended with {code} on SIGTERM")
        await app.start()
    finally:
        app.is_busy = False


async def pause_worker(world: World, rng: random.Random) -> None:
    """The worker hangs, mostly for longer than it may keep others from its turn."""
    if (worker := world.worker).is_busy:
        return
    worker.is_busy = True
    worker.pause()
    await asyncio.sleep(rng.uniform(0.5, 5))
    worker.resume()
    worker.is_busy = False
