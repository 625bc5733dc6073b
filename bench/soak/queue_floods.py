"""Long lines: whoever had its turn at the queue died in it, people ask, and more dies meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from redis import RedisError

from bench.soak.clients import documents
from bench.soak.clients.operations import perform_and_follow
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World
from slotlock.infrastructure.redis.admission.queue import PARTITIONS
from slotlock.infrastructure.redis.keys import admission_lock, lock_keys

QUEUE_USERS = 40
REQUESTED_SLOTS = 3
ARRIVAL_WINDOW_S = 0.8
LEASE_MS_RANGE = (800, 2_500)
# A token and a fencing token, as locks have them; the latter is less than any issued one.
DEAD_LEASE_VALUE = "nobody-serves-it-any-more:1"


async def fill_queue(
    world: World, rng: random.Random, disturb: Callable[[World, random.Random], Awaitable[None]]
) -> None:
    """Let many stand in line, and this happen while they do or as they are being served."""
    for_ms = rng.randint(*LEASE_MS_RANGE)
    with suppress(RedisError):
        await asyncio.to_thread(_take_over_leases, world, for_ms)
    slots = rng.sample(world.slots, REQUESTED_SLOTS)
    crowd = [(one, random.Random(rng.random())) for one in rng.sample(world.users, QUEUE_USERS)]
    asking = [_request_booking(world, me, fate.choice(slots), fate) for me, fate in crowd]
    await asyncio.gather(*asking, _disturb_later(world, rng, for_ms / 1000, disturb))


def _take_over_leases(world: World, lease_ms: int) -> None:
    for number in range(PARTITIONS):
        world.redis.set(lock_keys(admission_lock(number)).lock, DEAD_LEASE_VALUE, px=lease_ms)


async def _disturb_later(
    world: World,
    rng: random.Random,
    lease_s: float,
    disturb: Callable[[World, random.Random], Awaitable[None]],
) -> None:
    # Often in the very moment in which the line is served at once.
    after_s = rng.choice((rng.uniform(0.3, lease_s), lease_s + rng.uniform(0, 0.15)))
    await asyncio.sleep(after_s)
    await disturb(world, rng)


async def _request_booking(world: World, user: SoakUser, slot: str, rng: random.Random) -> None:
    await asyncio.sleep(rng.uniform(0, ARRIVAL_WINDOW_S))
    key = user.next_key() if rng.random() < 0.7 else None
    wish: Json = {"slotId": f"slot_{slot}", "idempotencyKey": key, "hold": rng.random() < 0.3}
    query, name = (documents.BOOK, "book") if rng.random() < 0.1 else (documents.REQUEST, "request")
    act = ClientOperation(
        name, user.id, query, {"input": wish}, user.token, key, ((slot, user.id),)
    )
    await perform_and_follow(world, act, rng)
