"""Subscribers that begin, stop and resume while faults last, and record what they receive."""

import asyncio
import time
from contextlib import suppress

import aiohttp
import orjson

from bench.faults.clients.plan import Clients
from bench.faults.clients.sending import send
from bench.faults.clients.tickets import FINAL_STATUSES
from bench.faults.clients.users import READ_SLOT
from bench.faults.history import Json, Operation
from bench.soak.clients import documents
from bench.soak.clients.client_user import ClientUser
from bench.soak.run_log import raw_id

PROTOCOL = "graphql-transport-ws"
CONNECT_S = 10.0
# The end of a connection to an app that is frozen or cut off has no answer.
CLOSE = aiohttp.ClientWSTimeout(ws_close=0.5)
# Nothing for so long, not even a ping, means that the app is frozen or cut off.
SILENCE_S = 30.0
PAUSE_S = 0.5
MEAN_SESSION_S = 40.0
ABSENCE_S = (0.5, 3.0)
FIND_TICKETS_S = 0.3
AVAILABILITY, BOOKINGS = "availability", "bookings"


class Watcher:
    """A client that watches all slots, the bookings of a user and the user's tickets.

    It writes one line for each message, and for the begin and the end of each session:

        {watcher, session, user, app, at, kind, ...}

    `kind` is `begin`, `end`, `availability` with {slot, version, remaining}, `booking` with
    {booking, action}, or `ticket` with {ticket, status}; the status is None when it subscribes.
    """

    def __init__(self, clients: Clients, user: ClientUser, number: int) -> None:
        self._clients, self._user = clients, user
        self._app_index, self._session = number, 0
        self._rng = clients.rng(f"watcher {number}")
        self.name = f"watcher {number}"
        self.last: dict[str, Json] = {}

    async def run(self) -> None:
        """Watch and stay away in turns until the task is cancelled."""
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
        with suppress(aiohttp.ClientError, OSError, TimeoutError, ValueError):
            url = f"{self._app.replace('http', 'ws', 1)}/graphql"
            async with asyncio.timeout(CONNECT_S):
                socket = await self._clients.http.ws_connect(
                    url, protocols=[PROTOCOL], max_msg_size=0, timeout=CLOSE
                )
            async with socket:
                payload = {"authorization": f"Bearer {self._user.token}"}
                await socket.send_json({"type": "connection_init", "payload": payload})
                await socket.receive_json(timeout=CONNECT_S)
                await self._subscribe(socket)

    async def _subscribe(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        clients, self.last = self._clients, {}
        slots = [f"slot_{slot}" for slot in (*clients.slots, *clients.quiet_slots)]
        self._write("begin", user=self._user.id)
        finding = asyncio.create_task(self._follow_tickets(socket))
        try:
            await _send(socket, AVAILABILITY, documents.AVAILABILITY, {"slots": slots})
            await _send(socket, BOOKINGS, documents.BOOKING_EVENTS, {})
            while True:
                message = await socket.receive(timeout=SILENCE_S)
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                content = orjson.loads(message.data)
                if content["type"] == "ping":
                    await socket.send_json({"type": "pong"})
                elif content["type"] == "next" and (data := content["payload"].get("data")):
                    self._on_next(data)
                elif content["type"] != "complete":
                    return
        finally:
            self._write("end")
            finding.cancel()
            await asyncio.gather(finding, return_exceptions=True)

    async def _follow_tickets(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        followed = set[str]()
        while True:
            for ticket, (user, status) in list(self._clients.tickets.items()):
                is_open = user is self._user and status not in FINAL_STATUSES
                if is_open and ticket not in followed:
                    followed.add(ticket)
                    self._write("ticket", ticket=ticket, status=None)
                    variables = {"ticket": ticket}
                    await _send(socket, ticket, documents.TICKET_SUBSCRIPTION, variables)
            await asyncio.sleep(FIND_TICKETS_S)

    def _on_next(self, data: Json) -> None:
        if state := data.get("slotAvailability"):
            slot_id = raw_id(state["slotId"])
            self.last[slot_id] = state
            shown = {name: state[name] for name in ("version", "remaining")}
            self._write("availability", slot=slot_id, **shown)
        elif event := data.get("myBookings"):
            booking_id = raw_id(event["booking"]["id"])
            self._write("booking", booking=booking_id, action=event["action"])
        elif ticket := data.get("ticket"):
            self._write("ticket", ticket=ticket["id"], status=ticket["status"])

    def _write(self, kind: str, **shown: object) -> None:
        line = {"watcher": self.name, "session": self._session, "app": self._app}
        self._clients.history.write_watched({**line, "at": time.monotonic(), "kind": kind, **shown})

    async def converge(self, slot_id: str, deadline: float) -> None:
        """Wait until the last value is that of a query at every app, and write both."""
        for app in self._clients.apps:
            variables: Json = {"slot": f"slot_{slot_id}"}
            while True:
                sent = await send(self._clients, self._user, "read", READ_SLOT, variables, app)
                queried, last = sent.outcome or {}, self.last.get(slot_id, {})
                names = ("version", "remaining")
                is_equal = [queried.get(n) for n in names] == [last.get(n) for n in names]
                if is_equal or time.monotonic() > deadline:
                    break
                await asyncio.sleep(PAUSE_S)
            self._write_converged(app, {"slot": slot_id, "subscribed": last, "queried": queried})

    def _write_converged(self, app: str, outcome: Json) -> None:
        now, history, user_id = time.monotonic(), self._clients.history, self._user.id
        given = {"app": app}
        id_ = history.next_id()
        history.write(Operation(id_, self.name, "converged", user_id, given, now, now, outcome))


async def _send(
    socket: aiohttp.ClientWebSocketResponse, id_: str, document: str, variables: Json
) -> None:
    payload = {"query": document, "variables": variables}
    await socket.send_json({"id": id_, "type": "subscribe", "payload": payload})
