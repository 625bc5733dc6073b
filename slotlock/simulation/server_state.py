"""What is so in the end, by the database's own view: rosters, slots, and people's own lists."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from slotlock.simulation.client.concurrency import gather_limited
from slotlock.simulation.client.documents import BOOK, MY_BOOKINGS, ROSTER, SLOTS
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.model.attempts import (
    RETRY_DELAYS_MS,
    BookingAttempt,
    Response,
    SimulatedSlot,
    SimulatedUser,
)
from slotlock.simulation.model.plan import BookingMode
from slotlock.simulation.rush import WAIT_MS
from slotlock.simulation.tickets import TicketClient

MAX_NODES = 100


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot and its roster: booking and user of each place that is taken."""

    capacity: int
    remaining: int
    roster: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServerState:
    """Slots by id; of some people their live bookings; of some asks what they are told again."""

    slots: dict[str, SlotState]
    own_bookings: list[tuple[SimulatedUser, frozenset[str]]] = field(default_factory=list)
    retried: list[tuple[BookingAttempt, Response | None]] = field(default_factory=list)


async def load_slot_states(
    client: GraphQLClient, token: str, slots: Sequence[SimulatedSlot]
) -> dict[str, SlotState]:
    """Each slot with its whole roster. Errors: UnreachedError, SimulationError."""
    ids = [slot.id for slot in slots]
    parts = [ids[at : at + MAX_NODES] for at in range(0, len(ids), MAX_NODES)]
    pages = await gather_limited(
        lambda part: client.query_with_retry(SLOTS, token, ids=part), parts
    )
    nodes = {node["id"]: node for node in itertools.chain(*pages) if node}

    async def load_roster(slot_id: str) -> tuple[tuple[str, str], ...]:
        found = [
            (booking["id"], (booking["user"] or {}).get("id", "nobody"))
            async for booking in _paginate(client, token, ROSTER, id=slot_id)
        ]
        return tuple(found)

    rosters = await gather_limited(load_roster, ids)
    return {
        slot_id: SlotState(nodes[slot_id]["capacity"], nodes[slot_id]["remaining"], booked)
        for slot_id, booked in zip(ids, rosters, strict=True)
    }


async def load_own_bookings(
    client: GraphQLClient, users: Sequence[SimulatedUser]
) -> list[tuple[SimulatedUser, frozenset[str]]]:
    """What each of them is told when they ask for their own bookings."""

    async def load_own(user: SimulatedUser) -> tuple[SimulatedUser, frozenset[str]]:
        found = [
            booking["id"]
            async for booking in _paginate(client, user.token, MY_BOOKINGS)
            if booking["status"] == "CONFIRMED"
        ]
        return user, frozenset(found)

    return await gather_limited(load_own, users)


async def retry_all(
    client: GraphQLClient, attempts: Sequence[BookingAttempt], ticket_client: TicketClient | None
) -> list[tuple[BookingAttempt, Response | None]]:
    """What each ask is told when it is sent once more with its key, or its ticket is."""

    async def retry(attempt: BookingAttempt) -> tuple[BookingAttempt, Response | None]:
        if ticket_client is not None and attempt.ticket_id is not None:
            return attempt, await ticket_client.load_response(attempt)
        return attempt, await _retry(client, attempt)

    return await gather_limited(retry, attempts)


async def _retry(client: GraphQLClient, attempt: BookingAttempt) -> Response:
    asked = {
        "slotId": attempt.slot.id,
        "idempotencyKey": attempt.idempotency_key,
        "waitMs": WAIT_MS[BookingMode.WAIT],
    }
    while True:
        told: Response = await client.query_with_retry(BOOK, attempt.user.token, input=asked)
        if told["__typename"] not in RETRY_DELAYS_MS:
            return told
        await asyncio.sleep(told.get("retryAfterMs", 0) / 1000)


async def _paginate(
    client: GraphQLClient, token: str, document: str, **variables: Any
) -> AsyncIterator[dict[str, Any]]:
    after = None
    while True:
        page = await client.query_with_retry(document, token, after=after, **variables)
        for node in page["nodes"]:
            yield node
        if not page["pageInfo"]["hasNextPage"]:
            return
        after = page["pageInfo"]["endCursor"]
