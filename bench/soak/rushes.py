"""Rushes: many users book one slot at once, while chaos deletes the lock of that slot."""

import asyncio
import random

from bench.soak.clients import documents
from bench.soak.clients.operations import perform_and_follow
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World

RUSH_USERS = 16
OPERATIONS_PER_USER = 6


async def rush(world: World, slot: str, rng: random.Random) -> None:
    """Let users book the slot, cancel, and book it again."""
    users = rng.sample(world.users, RUSH_USERS)
    rngs = [random.Random(rng.random()) for _ in users]
    await asyncio.gather(
        *(
            _run_user(world, slot, user, user_rng)
            for user, user_rng in zip(users, rngs, strict=True)
        )
    )


async def _run_user(world: World, slot: str, user: SoakUser, rng: random.Random) -> None:
    for _ in range(OPERATIONS_PER_USER):
        await perform_and_follow(world, _pick_operation(slot, user, rng), rng)


def _pick_operation(slot: str, user: SoakUser, rng: random.Random) -> ClientOperation:
    key = user.next_key() if rng.random() < 0.5 else None
    wait_ms = rng.choice((0, 0, 1_000, 4_000))
    own_bookings = [booking for booking in user.known_bookings if booking[-48:-24] == slot]
    if own_bookings and rng.random() < 0.8:
        variables: Json = {"booking": own_bookings[-1], "key": key, "wait": wait_ms}
        document, name = documents.CANCEL, "cancel"
        if rng.random() < 0.2:
            document, name = documents.CONFIRM, "confirm"
        else:
            user.known_bookings.remove(own_bookings[-1])
        return ClientOperation(name, user.id, document, variables, user.token, key)
    if rng.random() < 0.2:
        variables = {"slot": f"slot_{slot}", "wait": wait_ms}
        return ClientOperation("join", user.id, documents.JOIN, variables, user.token)
    booking_input: Json = {
        "slotId": f"slot_{slot}",
        "waitMs": wait_ms,
        "idempotencyKey": key,
        "hold": rng.random() < 0.3,
    }
    document, name = (
        (documents.REQUEST, "request") if rng.random() < 0.4 else (documents.BOOK, "book")
    )
    claims = ((slot, user.id),)
    return ClientOperation(
        name, user.id, document, {"input": booking_input}, user.token, key, claims
    )
