"""What is so in the end, by the database's own view: rosters, slots, and people's own lists."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from slotlock.api.simulation.abreast import abreast
from slotlock.api.simulation.documents import BOOK, MY_BOOKINGS, ROSTER, SLOTS
from slotlock.api.simulation.http import Server
from slotlock.api.simulation.ledger import AGAIN_AFTER_MS, Ask, Person, Slot, Told
from slotlock.api.simulation.plan import By
from slotlock.api.simulation.rush import WAIT_MS
from slotlock.api.simulation.tickets import Tickets

MOST_NODES = 100


@dataclass(frozen=True, slots=True)
class SlotTruth:
    """A slot and its roster: booking and user of each place that is taken."""

    capacity: int
    remaining: int
    roster: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """Slots by id; of some people their live bookings; of some asks what they are told again."""

    slots: dict[str, SlotTruth]
    own: list[tuple[Person, frozenset[str]]] = field(default_factory=list)
    again: list[tuple[Ask, Told | None]] = field(default_factory=list)


async def slots_now(server: Server, token: str, slots: Sequence[Slot]) -> dict[str, SlotTruth]:
    """Each slot with its whole roster. Errors: UnreachedError, SimulationError."""
    ids = [slot.id for slot in slots]
    parts = [ids[at : at + MOST_NODES] for at in range(0, len(ids), MOST_NODES)]
    pages = await abreast(lambda part: server.insist(SLOTS, token, ids=part), parts)
    nodes = {node["id"]: node for node in itertools.chain(*pages) if node}

    async def roster(slot_id: str) -> tuple[tuple[str, str], ...]:
        found = [
            (booking["id"], (booking["user"] or {}).get("id", "nobody"))
            async for booking in _all(server, token, ROSTER, id=slot_id)
        ]
        return tuple(found)

    rosters = await abreast(roster, ids)
    return {
        slot_id: SlotTruth(nodes[slot_id]["capacity"], nodes[slot_id]["remaining"], booked)
        for slot_id, booked in zip(ids, rosters, strict=True)
    }


async def own_bookings(
    server: Server, some: Sequence[Person]
) -> list[tuple[Person, frozenset[str]]]:
    """What each of them is told when they ask for their own bookings."""

    async def own(person: Person) -> tuple[Person, frozenset[str]]:
        found = [
            booking["id"]
            async for booking in _all(server, person.token, MY_BOOKINGS)
            if booking["status"] == "CONFIRMED"
        ]
        return person, frozenset(found)

    return await abreast(own, some)


async def asked_again(
    server: Server, some: Sequence[Ask], tickets: Tickets | None
) -> list[tuple[Ask, Told | None]]:
    """What each ask is told when it is sent once more with its key, or its ticket is."""

    async def again(ask: Ask) -> tuple[Ask, Told | None]:
        if tickets is not None and ask.ticket_id is not None:
            return ask, await tickets.now(ask)
        return ask, await _told_again(server, ask)

    return await abreast(again, some)


async def _told_again(server: Server, ask: Ask) -> Told:
    asked = {"slotId": ask.slot.id, "idempotencyKey": ask.key, "waitMs": WAIT_MS[By.WAIT]}
    while True:
        told: Told = await server.insist(BOOK, ask.person.token, input=asked)
        if told["__typename"] not in AGAIN_AFTER_MS:
            return told
        await asyncio.sleep(told.get("retryAfterMs", 0) / 1000)


async def _all(
    server: Server, token: str, query: str, **variables: Any
) -> AsyncIterator[dict[str, Any]]:
    after = None
    while True:
        page = await server.insist(query, token, after=after, **variables)
        for node in page["nodes"]:
            yield node
        if not page["pageInfo"]["hasNextPage"]:
            return
        after = page["pageInfo"]["endCursor"]
