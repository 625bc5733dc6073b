"""Subscribers of the availability of all slots, whose last values must be those of queries."""

import asyncio
import time
from contextlib import suppress

import aiohttp
import orjson

from bench.faults.clients.plan import Clients
from bench.faults.clients.sending import send
from bench.faults.clients.users import READ_SLOT
from bench.faults.history import Json, Operation
from bench.soak.clients import documents
from bench.soak.clients.client_user import ClientUser

PROTOCOL = "graphql-transport-ws"
CONNECT_S = 10.0
# Nothing for so long, not even a ping, means that the app is frozen or cut off.
SILENCE_S = 30.0
RECONNECT_S = 0.3
PAUSE_S = 0.5


class Subscriber:
    """A client that holds the last availability of each slot, whichever app it is connected to."""

    def __init__(self, clients: Clients, user: ClientUser, number: int) -> None:
        self._clients, self._user = clients, user
        self._app_index = number
        self.name = f"subscriber {number}"
        self.last: dict[str, Json] = {}

    async def run(self) -> None:
        """Stay subscribed until the task is cancelled."""
        while True:
            self._app_index += 1
            with suppress(aiohttp.ClientError, OSError, TimeoutError, ValueError):
                await self._subscribe(self._clients.apps[self._app_index % len(self._clients.apps)])
            await asyncio.sleep(RECONNECT_S)

    async def _subscribe(self, app: str) -> None:
        url = f"{app.replace('http', 'ws', 1)}/graphql"
        async with asyncio.timeout(CONNECT_S):
            socket = await self._clients.http.ws_connect(url, protocols=[PROTOCOL], max_msg_size=0)
        async with socket:
            payload = {"authorization": f"Bearer {self._user.token}"}
            await socket.send_json({"type": "connection_init", "payload": payload})
            await socket.receive_json(timeout=CONNECT_S)
            slots = [f"slot_{slot}" for slot in self._clients.slots]
            query = {"query": documents.AVAILABILITY, "variables": {"slots": slots}}
            await socket.send_json({"id": "1", "type": "subscribe", "payload": query})
            versions: dict[str, int] = {}
            while True:
                message = await socket.receive(timeout=SILENCE_S)
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                content = orjson.loads(message.data)
                if content["type"] == "ping":
                    await socket.send_json({"type": "pong"})
                elif content["type"] != "next":
                    return
                else:
                    self._on_next(content["payload"], versions, app)

    def _on_next(self, payload: Json, versions: dict[str, int], app: str) -> None:
        state = (payload.get("data") or {}).get("slotAvailability")
        if not state:
            return
        slot_id = str(state["slotId"])[-24:]
        self.last[slot_id] = state
        if state["version"] < versions.get(slot_id, 0):
            self._write("availabilityWentBack", app, {"after": versions[slot_id], "state": state})
        versions[slot_id] = state["version"]

    def _write(self, name: str, app: str, outcome: Json) -> None:
        now, history = time.monotonic(), self._clients.history
        given = {"app": app}
        history.write(
            Operation(history.next_id(), self.name, name, self._user.id, given, now, now, outcome)
        )

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
            self._write("converged", app, {"slot": slot_id, "subscribed": last, "queried": queried})
