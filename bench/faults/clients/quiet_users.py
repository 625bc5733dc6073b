"""Users of slots that change during faults only: a missed change is not repaired by the next."""

import asyncio

from bench.faults.clients.plan import Clients
from bench.faults.clients.sending import send
from bench.faults.history import Json
from bench.soak.clients import documents
from bench.soak.clients.client_user import ClientUser

CHANGES = 8
PAUSE_S = (0.1, 0.8)


async def run_quiet_user(clients: Clients, user: ClientUser) -> None:
    """Book and cancel some places at the begin of each fault, until the campaign stops."""
    booked: dict[str, str] = {}
    while await _fault_begins(clients):
        for _ in range(CHANGES):
            if not await clients.sleep(user.rng.uniform(*PAUSE_S)):
                return
            await _change(clients, user, booked)


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
