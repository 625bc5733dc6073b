"""What happens to the apps and to the worker: they are killed, told to stop, and hang."""

import asyncio
import random

from bench.soak.apps import App
from bench.soak.sending import send_recent_again
from bench.soak.world import World


def _idle(world: World, rng: random.Random) -> App | None:
    # One of them is left to serve.
    idle = [app for app in world.apps if app.up and not app.busy]
    return rng.choice(idle) if len(idle) > 1 else None


async def kill_app(world: World, rng: random.Random) -> None:
    """A process dies on whatever line it is, and another takes its place."""
    if (app := _idle(world, rng)) is not None:
        await _kill(world, app, rng)


async def kill_worker(world: World, rng: random.Random) -> None:
    """The worker dies with what it has taken from the line."""
    if not world.worker.busy:
        await _kill(world, world.worker, rng)


async def _kill(world: World, app: App, rng: random.Random) -> None:
    app.busy = True
    try:
        app.kill()
        send_recent_again(world)
        await asyncio.sleep(rng.uniform(0, 2))
        await app.start()
    finally:
        app.busy = False


async def stop_app(world: World, rng: random.Random) -> None:
    """A process is told to stop, and does so in order."""
    if (app := _idle(world, rng)) is not None:
        await _stop(world, app)


async def stop_worker(world: World, _rng: random.Random) -> None:
    """The worker is told to stop."""
    if not world.worker.busy:
        await _stop(world, world.worker)


async def _stop(world: World, app: App) -> None:
    app.busy = True
    try:
        code = await app.stop()
        if code != 0:
            world.ledger.violation("bad exit", f"{app.name} ended with {code} on SIGTERM")
        await app.start()
    finally:
        app.busy = False


async def pause_worker(world: World, rng: random.Random) -> None:
    """The worker hangs, mostly for longer than it may keep others from its turn."""
    if (worker := world.worker).busy:
        return
    worker.busy = True
    worker.pause()
    await asyncio.sleep(rng.uniform(0.5, 5))
    worker.resume()
    worker.busy = False
