"""What happens to servers, processes, keys and holds meanwhile, by a schedule of the seed."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pymongo.errors import PyMongoError
from redis import RedisError

from bench.soak.processes.processes import (
    kill_app,
    kill_worker,
    pause_worker,
    stop_app,
    stop_worker,
)
from bench.soak.processes.servers import SoakError
from bench.soak.queue_floods import fill_queue
from bench.soak.rushes import rush
from bench.soak.world import World
from slotlock.infrastructure.redis.keys import lock_keys

FLUSH_TIMEOUT_S = 3.0
MAX_UNWRITTEN_S = 2.0
MEAN_GAP_S = 2.5  # on average
LOCK_KEYS = "slotlock:{*"
# At once: a lock lives for some ms only. What is in line is left alone, though not whose turn it is
# to serve it: Redis loses a part of a line only with all that came after it.
DELETE_ONE_SCRIPT = """
local found = {}
for _, key in ipairs(redis.call('keys', ARGV[1])) do
  if not string.find(key, '{queue:%d+}:') then table.insert(found, key) end
end
return #found > 0 and redis.call('del', found[ARGV[2] % #found + 1]) or 0
"""
EVENT_WEIGHTS = {
    "kill app": 4,
    "stop app": 2,
    "kill worker": 4,
    "stop worker": 1,
    "pause worker": 3,
    "FLUSHALL": 3,
    "kill Valkey": 2,
    "pause Valkey": 2,
    "delete locks": 4,
    "run out holds": 10,
    "rush": 8,
    "FLUSHALL a line": 4,
    "kill Valkey with a line": 2,
    "kill worker with a line": 3,
    "kill app with a line": 3,
}
MONGO_KILLS_AT = (0.35, 0.75)  # of the run; a run that is too short for it leaves MongoDB alone
MIN_MONGO_RUN_S = 40.0


def schedule(world: World) -> list[tuple[float, str]]:
    """When what happens, in seconds from the beginning: every kind once, then at random."""
    rng = world.rng("chaos")
    at, events = 1.0, list[tuple[float, str]]()
    first = rng.sample(list(EVENT_WEIGHTS), len(EVENT_WEIGHTS))
    while (at := at + rng.expovariate(1 / MEAN_GAP_S)) < world.seconds - 3:
        kind = (
            first.pop()
            if first
            else rng.choices(list(EVENT_WEIGHTS), list(EVENT_WEIGHTS.values()))[0]
        )
        events.append((at, kind))
    if world.seconds >= MIN_MONGO_RUN_S:
        events += [(world.seconds * share, "kill mongod") for share in MONGO_KILLS_AT]
    return sorted(events)


async def run_chaos(world: World) -> None:
    """Let it all happen; what takes its time does not hold up what comes next."""
    rng, begin = world.rng("deeds"), time.monotonic()
    valkey, running = asyncio.Lock(), set[asyncio.Task[None]]()

    async def run_event(kind: str, rng: random.Random) -> None:
        world.run_log.chaos[kind] += 1
        if "Valkey" not in kind:
            await EVENTS[kind](world, rng)
            return
        async with valkey:
            await EVENTS[kind](world, rng)

    for at, kind in schedule(world):
        if not await world.sleep(max(at - (time.monotonic() - begin), 0)):
            break
        running.add(asyncio.create_task(run_event(kind, random.Random(rng.random()))))
    await asyncio.gather(*running)


async def flush_valkey(world: World, _rng: random.Random) -> None:
    """Everything that Valkey knew is gone."""
    began = time.time()
    with suppress(RedisError):
        await asyncio.to_thread(world.redis.flushall)
    # One that was not answered in time may yet happen.
    world.run_log.redis_losses.append((began, time.time() + FLUSH_TIMEOUT_S))


async def kill_valkey(world: World, rng: random.Random) -> None:
    """Valkey dies, with what it had not written."""
    began = time.time()
    world.valkey.kill()
    world.run_log.redis_losses.append((began - MAX_UNWRITTEN_S, time.time()))
    await asyncio.sleep(rng.uniform(0, 2))
    await world.valkey.start()


async def pause_valkey(world: World, rng: random.Random) -> None:
    """Valkey hangs."""
    world.valkey.pause()
    await asyncio.sleep(rng.uniform(1, 2.5))
    world.valkey.resume()


async def delete_locks(world: World, rng: random.Random, pattern: str = LOCK_KEYS) -> None:
    """Single locks vanish under those who hold them, for two seconds on end."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        with suppress(RedisError):
            any_ = rng.randrange(1000)
            gone: Any = await asyncio.to_thread(
                world.redis.eval, DELETE_ONE_SCRIPT, 0, pattern, any_
            )
            world.run_log.chaos["locks deleted"] += int(gone)
        await asyncio.sleep(0.001)


async def rush_without_locks(world: World, rng: random.Random) -> None:
    """A rush at one slot, in which exactly one guard is left: the version."""
    slot, chance = rng.choice(world.slots), random.Random(rng.random())
    its_lock = lock_keys(slot).lock
    await asyncio.gather(rush(world, slot, rng), delete_locks(world, chance, its_lock))


async def expire_holds(world: World, rng: random.Random) -> None:
    """The time of most holds is over, as if the clock had jumped."""
    with suppress(PyMongoError):
        world.run_log.chaos["holds run out"] += await asyncio.to_thread(
            end_holds_now, world, rng, 0.7
        )


def end_holds_now(world: World, rng: random.Random, share: float) -> int:
    """Let this share of the slots' holds end now; returns how many."""
    slots, shifted = world.database["slots"], 0
    for slot in slots.find({"bookings.heldUntil": {"$gt": datetime.now(UTC)}}):
        if rng.random() > share:
            continue
        until, times = datetime.now(UTC), dict[str, Any]()
        for place, booking in enumerate(slot["bookings"]):
            if "heldUntil" in booking and booking["heldUntil"] > until:
                last = len(booking["history"]) - 1
                times[f"bookings.{place}.heldUntil"] = until
                times[f"bookings.{place}.history.{last}.heldUntil"] = until
        # A new version: what was decided on the old times must not be written on the new ones.
        guard = {"_id": slot["_id"], "version": slot["version"]}
        change = {"$set": {**times, "nextDeadline": until}, "$inc": {"version": 1}}
        shifted += len(times) // 2 * slots.update_one(guard, change).modified_count
    return shifted


async def kill_mongod(world: World, rng: random.Random) -> None:
    """MongoDB dies and must come back with everything it acknowledged."""
    world.run_log.record_mongo_down()
    world.mongod.kill()
    await asyncio.sleep(rng.uniform(0, 8))
    try:
        await world.mongod.start()
    except SoakError as error:
        world.run_log.record_violation("mongod", str(error))
    world.run_log.record_mongo_up()


EVENTS: dict[str, Callable[[World, random.Random], Awaitable[None]]] = {
    "kill app": kill_app,
    "stop app": stop_app,
    "kill worker": kill_worker,
    "stop worker": stop_worker,
    "pause worker": pause_worker,
    "FLUSHALL": flush_valkey,
    "kill Valkey": kill_valkey,
    "pause Valkey": pause_valkey,
    "delete locks": delete_locks,
    "run out holds": expire_holds,
    "rush": rush_without_locks,
    "FLUSHALL a line": partial(fill_queue, disturb=flush_valkey),
    "kill Valkey with a line": partial(fill_queue, disturb=kill_valkey),
    "kill worker with a line": partial(fill_queue, disturb=kill_worker),
    "kill app with a line": partial(fill_queue, disturb=kill_app),
    "kill mongod": kill_mongod,
}
