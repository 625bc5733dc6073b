"""Long lines: whoever had its turn at the queue died in it, people ask, and more dies meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from redis import RedisError

from bench.soak import documents
from bench.soak.acts import do
from bench.soak.ledger import Act, Json
from bench.soak.world import Person, World
from slotlock.stores.queue import PARTITIONS

CROWD = 40
ASKED_SLOTS = 3
ARRIVES_WITHIN_S = 0.8
DEAD_FOR_MS = (800, 2_500)
# As those of locks are: an office's name and more, then the fence, less than all that were given.
DEAD = "nobody-serves-it-any-more:1"


async def grow_line(
    world: World, rng: random.Random, then: Callable[[World, random.Random], Awaitable[None]]
) -> None:
    """Let many stand in line, and this happen while they do or as they are being served."""
    for_ms = rng.randint(*DEAD_FOR_MS)
    with suppress(RedisError):
        await asyncio.to_thread(_end_turns, world, for_ms)
    slots = rng.sample(world.slots, ASKED_SLOTS)
    crowd = [(one, random.Random(rng.random())) for one in rng.sample(world.people, CROWD)]
    asking = [_ask(world, me, fate.choice(slots), fate) for me, fate in crowd]
    await asyncio.gather(*asking, _later(world, rng, for_ms / 1000, then))


def _end_turns(world: World, for_ms: int) -> None:
    for number in range(PARTITIONS):
        world.redis.set(f"slotlock:{{queue:{number}}}:lock", DEAD, px=for_ms)


async def _later(
    world: World,
    rng: random.Random,
    dead_for_s: float,
    then: Callable[[World, random.Random], Awaitable[None]],
) -> None:
    # Often in the very moment in which the line is served at once.
    after_s = rng.choice((rng.uniform(0.3, dead_for_s), dead_for_s + rng.uniform(0, 0.15)))
    await asyncio.sleep(after_s)
    await then(world, rng)


async def _ask(world: World, me: Person, slot: str, fate: random.Random) -> None:
    await asyncio.sleep(fate.uniform(0, ARRIVES_WITHIN_S))
    key = me.next_key() if fate.random() < 0.7 else None
    wish: Json = {"slotId": f"slot_{slot}", "idempotencyKey": key, "hold": fate.random() < 0.3}
    query, name = (
        (documents.BOOK, "book") if fate.random() < 0.1 else (documents.REQUEST, "request")
    )
    act = Act(name, me.id, query, {"input": wish}, me.token, key, ((slot, me.id),))
    await do(world, act, fate)
