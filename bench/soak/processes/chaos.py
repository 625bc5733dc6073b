"""Chaos for servers, processes, keys and holds, by a schedule that depends on the seed."""

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
MEAN_GAP_S = 2.5
LOCK_KEYS = "slotlock:{*"
# One script, because a lock lives for some ms only. It spares the entries of the queue, because
# Redis never loses an entry without all later ones. It does delete the workers' locks.
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
    "expire holds": 10,
    "rush": 8,
    "FLUSHALL and full queue": 4,
    "kill Valkey and full queue": 2,
    "kill worker and full queue": 3,
    "kill app and full queue": 3,
}
# Shares of the run; a shorter run does not kill MongoDB.
MONGO_KILLS_AT = (0.35, 0.75)
MIN_MONGO_RUN_S = 40.0


def schedule(world: World) -> list[tuple[float, str]]:
    """Return events by the second of the run: every kind once, then random ones."""
    rng = world.rng("chaos")
    at, events = 1.0, list[tuple[float, str]]()
    remaining = rng.sample(list(EVENT_WEIGHTS), len(EVENT_WEIGHTS))
    while (at := at + rng.expovariate(1 / MEAN_GAP_S)) < world.seconds - 3:
        kind = (
            remaining.pop()
            if remaining
            else rng.choices(list(EVENT_WEIGHTS), list(EVENT_WEIGHTS.values()))[0]
        )
        events.append((at, kind))
    if world.seconds >= MIN_MONGO_RUN_S:
        events += [(world.seconds * share, "kill mongod") for share in MONGO_KILLS_AT]
    return sorted(events)


async def run_chaos(world: World) -> None:
    """Run all events at their times, without waiting for earlier ones to end."""
    rng, started_at = world.rng("chaos events"), time.monotonic()
    valkey_lock, running = asyncio.Lock(), set[asyncio.Task[None]]()

    async def run_event(kind: str, rng: random.Random) -> None:
        world.run_log.chaos[kind] += 1
        if "Valkey" not in kind:
            await EVENTS[kind](world, rng)
            return
        async with valkey_lock:
            await EVENTS[kind](world, rng)

    for at, kind in schedule(world):
        if not await world.sleep(max(at - (time.monotonic() - started_at), 0)):
            break
        running.add(asyncio.create_task(run_event(kind, random.Random(rng.random()))))
    await asyncio.gather(*running)


async def flush_valkey(world: World, _rng: random.Random) -> None:
    """Delete all data in Valkey."""
    started_at = time.time()
    with suppress(RedisError):
        await asyncio.to_thread(world.redis.flushall)
    # A command without a response may still be executed.
    world.run_log.redis_losses.append((started_at, time.time() + FLUSH_TIMEOUT_S))


async def kill_valkey(world: World, rng: random.Random) -> None:
    """Kill Valkey, which loses its unwritten data, and start it again."""
    started_at = time.time()
    world.valkey.kill()
    world.run_log.redis_losses.append((started_at - MAX_UNWRITTEN_S, time.time()))
    await asyncio.sleep(rng.uniform(0, 2))
    await world.valkey.start()


async def pause_valkey(world: World, rng: random.Random) -> None:
    """Pause Valkey."""
    world.valkey.pause()
    await asyncio.sleep(rng.uniform(1, 2.5))
    world.valkey.resume()


async def delete_locks(world: World, rng: random.Random, pattern: str = LOCK_KEYS) -> None:
    """Delete random locks, also held ones, for two seconds."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        with suppress(RedisError):
            index = rng.randrange(1000)
            count: Any = await asyncio.to_thread(
                world.redis.eval, DELETE_ONE_SCRIPT, 0, pattern, index
            )
            world.run_log.chaos["locks deleted"] += int(count)
        await asyncio.sleep(0.001)


async def rush_without_locks(world: World, rng: random.Random) -> None:
    """Let users rush at one slot without its lock, so that only the version guards it."""
    slot, lock_rng = rng.choice(world.slots), random.Random(rng.random())
    lock_key = lock_keys(slot).lock
    await asyncio.gather(rush(world, slot, rng), delete_locks(world, lock_rng, lock_key))


async def expire_holds(world: World, rng: random.Random) -> None:
    """End most holds now, as if the clock had jumped."""
    with suppress(PyMongoError):
        world.run_log.chaos["holds expired"] += await asyncio.to_thread(
            end_holds_now, world, rng, 0.7
        )


def end_holds_now(world: World, rng: random.Random, share: float) -> int:
    """End the holds in this share of the slots now, and return how many."""
    slots, shifted = world.database["slots"], 0
    for slot in slots.find({"bookings.heldUntil": {"$gt": datetime.now(UTC)}}):
        if rng.random() > share:
            continue
        until, changes = datetime.now(UTC), dict[str, Any]()
        for index, booking in enumerate(slot["bookings"]):
            if "heldUntil" in booking and booking["heldUntil"] > until:
                last = len(booking["history"]) - 1
                changes[f"bookings.{index}.heldUntil"] = until
                changes[f"bookings.{index}.history.{last}.heldUntil"] = until
        # A new version, so that no decision on the old times is written over the new ones.
        version_filter = {"_id": slot["_id"], "version": slot["version"]}
        update = {"$set": {**changes, "nextDeadline": until}, "$inc": {"version": 1}}
        shifted += len(changes) // 2 * slots.update_one(version_filter, update).modified_count
    return shifted


async def kill_mongod(world: World, rng: random.Random) -> None:
    """Kill MongoDB, which must not lose acknowledged writes, and start it again."""
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
    "expire holds": expire_holds,
    "rush": rush_without_locks,
    "FLUSHALL and full queue": partial(fill_queue, disturb=flush_valkey),
    "kill Valkey and full queue": partial(fill_queue, disturb=kill_valkey),
    "kill worker and full queue": partial(fill_queue, disturb=kill_worker),
    "kill app and full queue": partial(fill_queue, disturb=kill_app),
    "kill mongod": kill_mongod,
}
