"""Loads the server's state at the end: rosters, slots, users' own lists, repeated requests."""

import asyncio
import itertools
from collections.abc import Sequence

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
from slotlock.simulation.model.invariants import SlotOnServer
from slotlock.simulation.model.plan import BookingMode
from slotlock.simulation.tickets import TicketClient

# The server's limit of ids in one query.
MAX_NODES = 100


async def load_slot_states(
    client: GraphQLClient, token: str, slots: Sequence[SimulatedSlot]
) -> dict[str, SlotOnServer]:
    """Load each slot with its whole roster; raises NoResponseError and SimulationError."""
    ids = [slot.id for slot in slots]
    batches = [ids[start : start + MAX_NODES] for start in range(0, len(ids), MAX_NODES)]
    pages = await gather_limited(
        lambda batch: client.query_with_retry(SLOTS, token, ids=batch), batches
    )
    nodes = {node["id"]: node for node in itertools.chain(*pages) if node}

    async def load_roster(slot_id: str) -> tuple[tuple[str, str], ...]:
        bookings = [
            (booking["id"], (booking["user"] or {}).get("id", "nobody"))
            async for booking in client.paginate(ROSTER, token, id=slot_id)
        ]
        return tuple(bookings)

    rosters = await gather_limited(load_roster, ids)
    return {
        slot_id: SlotOnServer(nodes[slot_id]["capacity"], nodes[slot_id]["remaining"], roster)
        for slot_id, roster in zip(ids, rosters, strict=True)
    }


async def load_own_bookings(
    client: GraphQLClient, users: Sequence[SimulatedUser]
) -> list[tuple[SimulatedUser, frozenset[str]]]:
    """Load the ids of the confirmed bookings in each user's own list."""

    async def load_own(user: SimulatedUser) -> tuple[SimulatedUser, frozenset[str]]:
        booking_ids = [
            booking["id"]
            async for booking in client.paginate(MY_BOOKINGS, user.token)
            if booking["status"] == "CONFIRMED"
        ]
        return user, frozenset(booking_ids)

    return await gather_limited(load_own, users)


async def repeat_all(
    client: GraphQLClient, attempts: Sequence[BookingAttempt], ticket_client: TicketClient | None
) -> list[tuple[BookingAttempt, Response | None]]:
    """Send each attempt once more with its key, or query its ticket, and return the responses."""

    async def repeat(attempt: BookingAttempt) -> tuple[BookingAttempt, Response | None]:
        if ticket_client is not None and attempt.ticket_id is not None:
            return attempt, await ticket_client.load_outcome(attempt)
        return attempt, await _repeat_booking(client, attempt)

    return await gather_limited(repeat, attempts)


async def _repeat_booking(client: GraphQLClient, attempt: BookingAttempt) -> Response:
    booking_input = {
        "slotId": attempt.slot.id,
        "idempotencyKey": attempt.idempotency_key,
        "waitMs": BookingMode.WAIT.wait_ms,
    }
    while True:
        response: Response = await client.query_with_retry(
            BOOK, attempt.user.token, input=booking_input
        )
        if response["__typename"] not in RETRY_DELAYS_MS:
            return response
        await asyncio.sleep(response.get("retryAfterMs", 0) / 1000)
