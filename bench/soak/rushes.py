"""Rushes: many people at one slot at once, while its lock vanishes under whoever holds it."""

import asyncio
import random

from bench.soak import documents
from bench.soak.acts import do
from bench.soak.ledger import Act, Json
from bench.soak.world import Person, World

CROWD = 16
DEEDS_EACH = 6


async def rush(world: World, slot: str, rng: random.Random) -> None:
    """Everybody wants the same, gives it back, and wants it again."""
    crowd = rng.sample(world.people, CROWD)
    fates = [random.Random(rng.random()) for _ in crowd]
    await asyncio.gather(*(_push(world, slot, *each) for each in zip(crowd, fates, strict=True)))


async def _push(world: World, slot: str, me: Person, fate: random.Random) -> None:
    for _ in range(DEEDS_EACH):
        await do(world, _deed(slot, me, fate), fate)


def _deed(slot: str, me: Person, fate: random.Random) -> Act:
    key = me.next_key() if fate.random() < 0.5 else None
    wait = fate.choice((0, 0, 1_000, 4_000))
    mine = [booking for booking in me.known if booking[-48:-24] == slot]
    if mine and fate.random() < 0.8:
        variables: Json = {"booking": mine[-1], "key": key, "wait": wait}
        query, name = documents.CANCEL, "cancel"
        if fate.random() < 0.2:
            query, name = documents.CONFIRM, "confirm"
        else:
            me.known.remove(mine[-1])
        return Act(name, me.id, query, variables, me.token, key)
    if fate.random() < 0.2:
        variables = {"slot": f"slot_{slot}", "wait": wait}
        return Act("join", me.id, documents.JOIN, variables, me.token)
    wish = {"slotId": f"slot_{slot}", "waitMs": wait, "idempotencyKey": key}
    wish["hold"] = fate.random() < 0.3
    claims = ((slot, me.id),)
    query, name = (
        (documents.REQUEST, "request") if fate.random() < 0.4 else (documents.BOOK, "book")
    )
    return Act(name, me.id, query, {"input": wish}, me.token, key, claims)
