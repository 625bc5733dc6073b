"""Follows tickets of the queue to their outcome."""

import asyncio
import time

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser
from bench.faults.clients.sending import send
from bench.faults.history import Operation

FOLLOW_S = 30.0
FINAL_S = 90.0
POLL_S = (0.05, 0.4)
FINAL_STATUSES = ("ANSWERED", "LOST")
MAX_CONCURRENT_POLLS = 16


async def follow_ticket(clients: Clients, user: ClientUser, sent: Operation) -> Operation:
    """Poll a ticket until it is final, the campaign stops, or some time has passed."""
    outcome = sent.outcome or {}
    ticket, deadline = str(outcome["id"]), time.monotonic() + FOLLOW_S
    clients.tickets.setdefault(ticket, (user, str(outcome["status"])))
    last = sent
    while time.monotonic() < deadline and clients.tickets[ticket][1] not in FINAL_STATUSES:
        if not await clients.sleep(user.rng.uniform(*POLL_S)):
            break
        last = await _poll(clients, user, ticket)
    return last


async def _poll(clients: Clients, user: ClientUser, ticket: str) -> Operation:
    app, variables = user.rng.choice(clients.apps), {"ticket": ticket}
    sent = await send(clients, user, "ticket", documents.TICKET_QUERY, variables, app)
    if sent.outcome is not None and "status" in sent.outcome:
        clients.tickets[ticket] = (user, str(sent.outcome["status"]))
    return sent


async def finish_tickets(clients: Clients) -> None:
    """Poll every ticket without an outcome once the faults are over."""
    deadline, polls = time.monotonic() + FINAL_S, asyncio.Semaphore(MAX_CONCURRENT_POLLS)

    async def finish(ticket: str) -> None:
        while clients.tickets[ticket][1] not in FINAL_STATUSES and time.monotonic() < deadline:
            user, _ = clients.tickets[ticket]
            async with polls:
                await _poll(clients, user, ticket)
            await asyncio.sleep(user.rng.uniform(*POLL_S))

    await asyncio.gather(*map(finish, list(clients.tickets)))
