"""Probes measure when each app accepts bookings, with users and slots of their own.

The users of a campaign wait for responses, so that one app without responses holds all of them. A
probe sends its next booking on time, whatever became of the earlier ones.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser
from bench.faults.clients.sending import send
from bench.faults.history import Json

BOOKINGS_PER_S = 10.0
# More places than the requests that can be open at one app: 10 a second for 20 s.
PROBE_USERS = 20
PROBE_SLOTS = 12
PROBE_SLOT: Json = {"capacity": PROBE_USERS}
WAIT_MS = 2_000


class Probe:
    """Books at one app at a constant rate, and cancels each booking at once.

    No request is repeated, so that each acknowledged booking is a new one.
    """

    def __init__(
        self, clients: Clients, app: str, users: Sequence[ClientUser], slots: Sequence[str]
    ) -> None:
        self._clients = clients
        self._app = app
        self._places = deque((user, slot) for user in users for slot in slots)

    async def run(self) -> None:
        """Book until the campaign stops."""
        next_at = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            while await self._clients.sleep(max(next_at - time.monotonic(), 0)):
                # After a stall of the campaign itself, the missed requests stay missed.
                next_at = max(next_at + 1 / BOOKINGS_PER_S, time.monotonic())
                if self._places:
                    tasks.create_task(self._book(*self._places.popleft()))

    async def _book(self, user: ClientUser, slot: str) -> None:
        given = {"slotId": f"slot_{slot}", "waitMs": WAIT_MS, "idempotencyKey": None, "hold": False}
        sent = await send(self._clients, user, "book", documents.BOOK, {"input": given}, self._app)
        # A booking whose response was lost is shown when the place is booked again.
        if booking := (sent.outcome or {}).get("booking"):
            variables = {"booking": booking["id"], "key": None, "wait": WAIT_MS}
            await send(self._clients, user, "cancel", documents.CANCEL, variables, self._app)
        self._places.append((user, slot))
