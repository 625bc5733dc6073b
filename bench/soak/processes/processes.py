"""Chaos for the apps and the worker: SIGKILL, SIGTERM and pauses."""

import asyncio
import random

from bench.soak.clients.sending import schedule_recent_resends
from bench.soak.processes.apps import SoakApp
from bench.soak.world import World


def _pick_idle_app(world: World, rng: random.Random) -> SoakApp | None:
    # One app must remain for the clients.
    idle = [app for app in world.apps if app.is_up and not app.is_busy]
    return rng.choice(idle) if len(idle) > 1 else None


async def kill_app(world: World, rng: random.Random) -> None:
    """Kill an app process and start it again."""
    if (app := _pick_idle_app(world, rng)) is not None:
        await _kill(world, app, rng)


async def kill_worker(world: World, rng: random.Random) -> None:
    """Kill the worker, which may hold requests of the queue, and start it again."""
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
    """Stop an app process gracefully and start it again."""
    if (app := _pick_idle_app(world, rng)) is not None:
        await _stop(world, app)


async def stop_worker(world: World, _rng: random.Random) -> None:
    """Stop the worker gracefully and start it again."""
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
    """Pause the worker, mostly for longer than its lease lasts."""
    if (worker := world.worker).is_busy:
        return
    worker.is_busy = True
    worker.pause()
    await asyncio.sleep(rng.uniform(0.5, 5))
    worker.resume()
    worker.is_busy = False
