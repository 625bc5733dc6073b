"""Long queues: the workers' leases belong to a dead process while users fill the queue."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from redis import RedisError

from bench.soak.clients import documents
from bench.soak.clients.operations import perform_and_follow
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World
from slotlock.infrastructure.redis.keys import PARTITIONS, admission_lock, lock_keys

QUEUE_USERS = 40
REQUESTED_SLOTS = 3
ARRIVAL_WINDOW_S = 0.8
LEASE_MS_RANGE = (800, 2_500)
# A token and a fencing number, as locks have them; the server has issued higher numbers.
DEAD_LEASE_VALUE = "the-lease-of-a-dead-process:1"


async def fill_queue(
    world: World, rng: random.Random, disturb: Callable[[World, random.Random], Awaitable[None]]
) -> None:
    """Fill the queue, and cause a failure while it is full or being served."""
    lease_ms = rng.randint(*LEASE_MS_RANGE)
    with suppress(RedisError):
        await asyncio.to_thread(_take_over_leases, world, lease_ms)
    slots = rng.sample(world.slots, REQUESTED_SLOTS)
    users = [(user, random.Random(rng.random())) for user in rng.sample(world.users, QUEUE_USERS)]
    requests = [
        _request_booking(world, user, user_rng.choice(slots), user_rng) for user, user_rng in users
    ]
    await asyncio.gather(*requests, _disturb_later(world, rng, lease_ms / 1000, disturb))


def _take_over_leases(world: World, lease_ms: int) -> None:
    for number in range(PARTITIONS):
        world.redis.set(lock_keys(admission_lock(number)).lock, DEAD_LEASE_VALUE, px=lease_ms)


async def _disturb_later(
    world: World,
    rng: random.Random,
    lease_s: float,
    disturb: Callable[[World, random.Random], Awaitable[None]],
) -> None:
    # Often at the moment when a worker serves the whole queue at once.
    delay_s = rng.choice((rng.uniform(0.3, lease_s), lease_s + rng.uniform(0, 0.15)))
    await asyncio.sleep(delay_s)
    await disturb(world, rng)


async def _request_booking(world: World, user: SoakUser, slot: str, rng: random.Random) -> None:
    await asyncio.sleep(rng.uniform(0, ARRIVAL_WINDOW_S))
    key = user.next_key() if rng.random() < 0.7 else None
    booking_input: Json = {
        "slotId": f"slot_{slot}",
        "idempotencyKey": key,
        "hold": rng.random() < 0.3,
    }
    document, name = (
        (documents.BOOK, "book") if rng.random() < 0.1 else (documents.REQUEST, "request")
    )
    claims = ((slot, user.id),)
    operation = ClientOperation(
        name, user.id, document, {"input": booking_input}, user.token, key, claims
    )
    await perform_and_follow(world, operation, rng)
