"""Subscribers that begin, stop and resume while faults last, and record what they receive."""

import asyncio
import time
from contextlib import suppress

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser
from bench.faults.clients.sending import send
from bench.faults.clients.tickets import FINAL_STATUSES
from bench.faults.history import CONVERGED, SHOWN_STATE, Json, Operation, raw_id
from slotlock.simulation.client.websocket import WebSocketClient
from slotlock.simulation.model.plan import NoResponseError, SimulationError

CONNECT_S = 10.0
PAUSE_S = 0.5
MEAN_SESSION_S = 40.0
ABSENCE_S = (0.5, 3.0)
FIND_TICKETS_S = 0.3


class Watcher:
    """A client that watches all slots, the bookings of a user and the user's tickets.

    It writes one line for each message, and for the begin and the end of each session:

        {watcher, session, user, app, at, kind, ...}

    `kind` is `begin`, `end`, `availability` with {slot, version, remaining, isBooked}, `booking`
    with {booking, action, by, length}, where the length is that of the history, or `ticket` with
    {ticket, status}; the status is None when it subscribes.
    """

    def __init__(self, clients: Clients, user: ClientUser, number: int) -> None:
        self._clients, self._user = clients, user
        self._app_index, self._session = number, 0
        self._rng = clients.rng(f"watcher {number}")
        self.name = f"watcher {number}"
        self.last: dict[str, Json] = {}

    async def run(self) -> None:
        """Watch and stay out in turns until the task is cancelled."""
        while True:
            self._app_index += 1
            self._session += 1
            tasks = [asyncio.create_task(each) for each in (self._watch(), self._leave())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(self._rng.uniform(*ABSENCE_S))

    async def _leave(self) -> None:
        """Wait for the end of a session: all watchers leave together, or one alone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._rng.expovariate(1 / MEAN_SESSION_S)):
                await self._clients.plan.watchers_leave.wait()
        if self._clients.stop.is_set():
            await asyncio.Event().wait()  # the last comparison needs the session

    @property
    def _app(self) -> str:
        return self._clients.apps[self._app_index % len(self._clients.apps)]

    async def _watch(self) -> None:
        """Watch over one socket until it ends."""
        clients, self.last = self._clients, {}
        slots = [f"slot_{slot}" for slot in (*clients.slots, *clients.quiet_slots)]
        http = clients.client_of[self._app].http
        socket = WebSocketClient(http, self._app, self._user.token)
        with suppress(TimeoutError, NoResponseError):
            async with asyncio.timeout(CONNECT_S):
                await socket.open()
            self._write("begin", user=self._user.id)
            watching = [
                socket.subscribe(documents.AVAILABILITY, self._on_availability, slots=slots),
                socket.subscribe(documents.BOOKING_EVENTS, self._on_booking),
                self._follow_tickets(socket),
            ]
            tasks = [asyncio.create_task(each) for each in watching]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._write("end")
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await socket.close()

    async def _follow_tickets(self, socket: WebSocketClient) -> None:
        followed = set[str]()
        async with asyncio.TaskGroup() as tasks:
            while True:
                for ticket, (user, status) in list(self._clients.tickets.items()):
                    is_open = user is self._user and status not in FINAL_STATUSES
                    if is_open and ticket not in followed:
                        followed.add(ticket)
                        tasks.create_task(self._follow_ticket(socket, ticket))
                await asyncio.sleep(FIND_TICKETS_S)

    async def _follow_ticket(self, socket: WebSocketClient, ticket: str) -> None:
        self._write("ticket", ticket=ticket, status=None)
        with suppress(SimulationError):
            await socket.subscribe(documents.TICKET_SUBSCRIPTION, self._on_ticket, ticket=ticket)

    def _on_availability(self, state: Json) -> None:
        slot_id = raw_id(state["slotId"])
        self.last[slot_id] = state
        shown = {name: state[name] for name in ("version", "remaining", "isBooked")}
        self._write("availability", slot=slot_id, **shown)

    def _on_booking(self, event: Json) -> None:
        booking, by = event["booking"], event["by"] and raw_id(event["by"]["id"])
        shown = {"action": event["action"], "by": by, "length": len(booking["history"])}
        self._write("booking", booking=raw_id(booking["id"]), **shown)

    def _on_ticket(self, ticket: Json) -> None:
        self._write("ticket", ticket=ticket["id"], status=ticket["status"])

    def _write(self, kind: str, **shown: object) -> None:
        line = {"watcher": self.name, "session": self._session, "app": self._app}
        self._clients.history.write_watched({**line, "at": time.monotonic(), "kind": kind, **shown})

    async def converge(self, slot_id: str, deadline: float) -> None:
        """Wait until the last value is that of a query at every app, and write both."""
        document, variables = documents.READ_SLOT, {"slot": f"slot_{slot_id}"}
        for app in self._clients.apps:
            while True:
                sent = await send(self._clients, self._user, "read", document, variables, app)
                queried, last = sent.outcome or {}, self.last.get(slot_id, {})
                is_equal = all(queried.get(name) == last.get(name) for name in SHOWN_STATE)
                if is_equal or time.monotonic() > deadline:
                    break
                await asyncio.sleep(PAUSE_S)
            self._write_converged(app, {"slot": slot_id, "subscribed": last, "queried": queried})

    def _write_converged(self, app: str, outcome: Json) -> None:
        now, history, user_id = time.monotonic(), self._clients.history, self._user.id
        given = {"app": app}
        id_ = history.next_id()
        history.write(Operation(id_, self.name, CONVERGED, user_id, given, now, now, outcome))
