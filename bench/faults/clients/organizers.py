"""Organizers: they create slots with keys, change and cancel slots, and book for users."""

import asyncio
from datetime import UTC, datetime, timedelta

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser, type_of
from bench.faults.clients.sending import send, send_until_answered
from bench.faults.clients.users import Action, book, book_all, change
from bench.faults.history import CREATE_SLOT, PUBLISH, UNPUBLISH, Json

PAUSE_S = 1.0
# So many are repeated after their response, as if it had been lost on its way.
REPEATED_SHARE = 0.2
CANCELED_SHARE = 0.05
UNPUBLISHED_S = (0.2, 2.0)


def times_from_now(days: float) -> Json:
    """Return the times of a slot of one hour."""
    start = datetime.now(UTC) + timedelta(days=days)
    return {
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": (start + timedelta(hours=1)).isoformat(timespec="seconds"),
    }


async def run_creator(clients: Clients, user: ClientUser) -> None:
    """Create slots until the campaign stops, each with a key and a title of its own."""
    times = times_from_now(days=40)
    while await clients.sleep(user.rng.expovariate(1 / PAUSE_S)):
        key = user.next_key()
        given = {"title": f"Slot of {key}", "capacity": 1, "idempotencyKey": key, **times}
        variables: Json = {"input": given}
        document, rng = documents.CREATE, user.rng
        sent = await send_until_answered(clients, user, CREATE_SLOT, document, variables, rng)
        if sent.outcome is not None and rng.random() < REPEATED_SHARE:
            app = rng.choice(clients.apps)
            await send(clients, user, CREATE_SLOT, document, variables, app)


async def edit_slot(clients: Clients, user: ClientUser) -> None:
    """Change a slot of the teams, or sometimes cancel it and create another like it."""
    slot, app = user.rng.choice(clients.team_slots), user.rng.choice(clients.apps)
    if user.rng.random() < CANCELED_SHARE:
        variables: Json = {"slot": f"slot_{slot}"}
        sent = await send(clients, user, "cancelSlot", documents.CANCEL_SLOT, variables, app)
        if type_of(sent) in ("Slot", "SlotCancelled"):
            await _replace_slot(clients, user, slot)
        return
    changes: Json = {"capacity": user.rng.choice((1, 2, 2, 3, 3, 4, 5))}
    if user.rng.random() < 0.1:
        changes = {"waitlistOfferMinutes": user.rng.choice((1, None))}
    variables = {"input": {"slotId": f"slot_{slot}", **changes}}
    await send(clients, user, "editSlot", documents.UPDATE, variables, app)


async def _replace_slot(clients: Clients, user: ClientUser, slot: str) -> None:
    app, variables = user.rng.choice(clients.apps), {"input": clients.slot_inputs[slot]}
    sent = await send(clients, user, CREATE_SLOT, documents.CREATE, variables, app)
    if type_of(sent) == "Slot" and slot in clients.team_slots:
        created = str((sent.outcome or {})["id"])[-24:]
        clients.slot_inputs[created] = clients.slot_inputs[slot]
        clients.team_slots[clients.team_slots.index(slot)] = created


async def unpublish_for_a_while(clients: Clients, user: ClientUser) -> None:
    """Unpublish the campaign of the teams and publish it again; nothing is booked in between."""
    if user is not clients.organizers[0]:
        return
    app, variables = user.rng.choice(clients.apps), {"id": clients.campaign}
    sent = await send(clients, user, UNPUBLISH, documents.UNPUBLISH, variables, app)
    if sent.outcome is not None:
        await asyncio.sleep(user.rng.uniform(*UNPUBLISHED_S))
    while type_of(sent) != "Campaign" or sent.operation != PUBLISH:
        app = user.rng.choice(clients.apps)
        sent = await send(clients, user, PUBLISH, documents.PUBLISH, variables, app)
        await asyncio.sleep(0.3)


ORGANIZER_ACTIONS: dict[Action, float] = {
    book: 10,
    book_all: 4,
    change: 10,
    edit_slot: 8,
    unpublish_for_a_while: 0.7,
}
