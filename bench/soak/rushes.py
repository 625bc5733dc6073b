"""Rushes: many people at one slot at once, while its lock vanishes under whoever holds it."""

import asyncio
import random

from bench.soak.clients import documents
from bench.soak.clients.operations import perform_and_follow
from bench.soak.run_log import ClientOperation, Json
from bench.soak.world import SoakUser, World

RUSH_USERS = 16
OPERATIONS_PER_USER = 6


async def rush(world: World, slot: str, rng: random.Random) -> None:
    """Everybody wants the same, gives it back, and wants it again."""
    crowd = rng.sample(world.users, RUSH_USERS)
    fates = [random.Random(rng.random()) for _ in crowd]
    await asyncio.gather(
        *(_run_user(world, slot, *each) for each in zip(crowd, fates, strict=True))
    )


async def _run_user(world: World, slot: str, user: SoakUser, rng: random.Random) -> None:
    for _ in range(OPERATIONS_PER_USER):
        await perform_and_follow(world, _pick_operation(slot, user, rng), rng)


def _pick_operation(slot: str, user: SoakUser, rng: random.Random) -> ClientOperation:
    key = user.next_key() if rng.random() < 0.5 else None
    wait = rng.choice((0, 0, 1_000, 4_000))
    mine = [booking for booking in user.known_bookings if booking[-48:-24] == slot]
    if mine and rng.random() < 0.8:
        variables: Json = {"booking": mine[-1], "key": key, "wait": wait}
        query, name = documents.CANCEL, "cancel"
        if rng.random() < 0.2:
            query, name = documents.CONFIRM, "confirm"
        else:
            user.known_bookings.remove(mine[-1])
        return ClientOperation(name, user.id, query, variables, user.token, key)
    if rng.random() < 0.2:
        variables = {"slot": f"slot_{slot}", "wait": wait}
        return ClientOperation("join", user.id, documents.JOIN, variables, user.token)
    wish = {"slotId": f"slot_{slot}", "waitMs": wait, "idempotencyKey": key}
    wish["hold"] = rng.random() < 0.3
    claims = ((slot, user.id),)
    query, name = (documents.REQUEST, "request") if rng.random() < 0.4 else (documents.BOOK, "book")
    return ClientOperation(name, user.id, query, {"input": wish}, user.token, key, claims)
