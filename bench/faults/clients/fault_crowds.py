"""Users who act when a fault begins: some change slots only then, and others rush."""

import asyncio
import random

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser
from bench.faults.clients.sending import send, send_until_answered
from bench.faults.clients.users import booking_input, queue, remember_booking
from bench.faults.history import Json

CHANGES = 8
PAUSE_S = (0.1, 0.8)
RUSH_USERS, OPERATIONS_PER_USER = 16, 5
QUEUE_USERS, QUEUE_SLOTS, ARRIVAL_S = 40, 3, 0.8


async def run_quiet_user(clients: Clients, user: ClientUser) -> None:
    """Book and cancel some places at the begin of each fault, until the campaign stops.

    Nobody else changes these slots, so that no later change repairs one that was missed.
    """
    booked: dict[str, str] = {}
    while await _fault_begins(clients):
        for _ in range(CHANGES):
            if not await clients.sleep(user.rng.uniform(*PAUSE_S)):
                return
            await _change(clients, user, booked)


async def run_rushes(clients: Clients) -> None:
    """Let users rush at one slot, and others fill the queue, at the begin of each fault."""
    rng = clients.rng("rushes")
    while await _fault_begins(clients):
        slot = rng.choice(clients.slots)
        rushing = rng.sample(clients.users, min(RUSH_USERS, len(clients.users)))
        queueing = rng.sample(clients.users, min(QUEUE_USERS, len(clients.users)))
        slots = rng.sample(clients.slots, QUEUE_SLOTS)
        await asyncio.gather(
            *(_rush(clients, user, random.Random(rng.random()), slot) for user in rushing),
            *(
                _fill_queue(clients, user, random.Random(rng.random()), rng.choice(slots))
                for user in queueing
            ),
        )


async def _fault_begins(clients: Clients) -> bool:
    """Wait for a fault; return whether the campaign continues."""
    begins = asyncio.create_task(clients.plan.fault_begins.wait())
    stops = asyncio.create_task(clients.stop.wait())
    try:
        await asyncio.wait((begins, stops), return_when=asyncio.FIRST_COMPLETED)
    finally:
        begins.cancel()
        stops.cancel()
    return not clients.stop.is_set()


async def _change(clients: Clients, user: ClientUser, booked: dict[str, str]) -> None:
    slot, app = user.rng.choice(clients.quiet_slots), user.rng.choice(clients.apps)
    if booking := booked.pop(slot, None):
        variables: Json = {"booking": booking, "key": None, "wait": 0}
        await send(clients, user, "cancel", documents.CANCEL, variables, app)
        return
    given = {"slotId": f"slot_{slot}", "waitMs": 0, "idempotencyKey": None, "hold": False}
    sent = await send(clients, user, "book", documents.BOOK, {"input": given}, app)
    # A booking whose response was lost is shown when the place is booked again.
    if shown := (sent.outcome or {}).get("booking"):
        booked[slot] = shown["id"]


async def _rush(clients: Clients, user: ClientUser, rng: random.Random, slot: str) -> None:
    """Book the slot, cancel, and book it again."""
    for _ in range(OPERATIONS_PER_USER):
        own = [booking for booking in user.known_bookings if booking[-48:-24] == slot]
        if own and rng.random() < 0.8:
            user.known_bookings.remove(own[-1])
            variables: Json = {"booking": own[-1], "key": user.maybe_key(), "wait": 0}
            await send_until_answered(clients, user, "cancel", documents.CANCEL, variables, rng)
        else:
            variables = {"input": booking_input(user, rng, slot, hold=rng.random() < 0.3)}
            sent = await send_until_answered(clients, user, "book", documents.BOOK, variables, rng)
            remember_booking(user, sent)


async def _fill_queue(clients: Clients, user: ClientUser, rng: random.Random, slot: str) -> None:
    await asyncio.sleep(rng.uniform(0, ARRIVAL_S))
    await queue(clients, user, rng, slot)
