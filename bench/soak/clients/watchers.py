"""Clients that watch slots or bookings over WebSockets and reconnect after a failure."""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from bench.soak.clients import documents
from bench.soak.run_log import Json, raw_id
from bench.soak.world import SoakUser, World

RECONNECT_DELAY_S = 0.3
MAX_SLOTS = 100
SETTLE_S = 3.0


@dataclass(slots=True)
class Watcher:
    """A client that watches all slots, or its user's bookings, at changing app processes.

    `connected_periods` holds when it was connected, in seconds since the epoch.
    """

    name: str
    user: SoakUser
    watches_slots: bool
    watched_slots: set[str] = field(default_factory=set)
    last_states: dict[str, Json] = field(default_factory=dict)
    history_lengths: dict[str, int] = field(default_factory=dict)
    seen_actions: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    connected_periods: list[list[float]] = field(default_factory=list)
    messages: int = 0
    connection_count: int = 0


async def run_watcher(world: World, watcher: Watcher, stop: asyncio.Event) -> None:
    """Watch until the event is set."""
    rng = world.rng(watcher.name)
    while not stop.is_set():
        app = rng.choice([app for app in world.apps if app.is_up] or world.apps)
        with suppress(OSError, WebSocketException, TimeoutError, EOFError):
            await _watch_once(world, watcher, app.socket_url, rng.uniform(5, 60), stop)
        if watcher.connected_periods and watcher.connected_periods[-1][1] == float("inf"):
            watcher.connected_periods[-1][1] = time.time()
        await asyncio.sleep(RECONNECT_DELAY_S)


@asynccontextmanager
async def open_subscription(
    url: str, token: str, subscription: Json
) -> AsyncIterator[ClientConnection]:
    """Open a connection with one subscription."""
    protocols = [Subprotocol("graphql-transport-ws")]
    async with connect(url, subprotocols=protocols, proxy=None, open_timeout=10) as socket:
        payload = {"authorization": f"Bearer {token}"}
        await socket.send(json.dumps({"type": "connection_init", "payload": payload}))
        await asyncio.wait_for(socket.recv(), 10)
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": subscription}))
        yield socket


async def _watch_once(
    world: World, watcher: Watcher, url: str, duration_s: float, stop: asyncio.Event
) -> None:
    watcher.watched_slots = set(world.slots[:MAX_SLOTS])
    slot_ids = [f"slot_{slot}" for slot in sorted(watcher.watched_slots)]
    payload: Json = {"query": documents.BOOKING_EVENTS}
    if watcher.watches_slots:
        payload = {"query": documents.AVAILABILITY, "variables": {"slots": slot_ids}}
    async with open_subscription(url, watcher.user.token, payload) as socket:
        watcher.connection_count += 1
        watcher.connected_periods.append([time.time(), float("inf")])
        until = time.monotonic() + duration_s
        while not stop.is_set() and (world.closing.is_set() or time.monotonic() < until):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    message = json.loads(await socket.recv())
                    if message["type"] in ("complete", "error"):
                        return
                    if message["type"] == "ping":
                        await socket.send(json.dumps({"type": "pong"}))
                    _on_message(world, watcher, message)


def _on_message(world: World, watcher: Watcher, message: Json) -> None:
    data: Any = message.get("payload", {}).get("data") or {}
    for state in data.values():
        watcher.messages += 1
        if watcher.watches_slots:
            _check_availability(world, watcher, state)
        else:
            _check_booking_event(world, watcher, state)


def _check_availability(world: World, watcher: Watcher, state: Json) -> None:
    slot_id, report = raw_id(state["slotId"]), world.run_log.record_violation
    previous = watcher.last_states.get(slot_id)
    if previous and state["version"] < previous["version"]:
        versions = f"version {state['version']} after {previous['version']}"
        report("availability goes back", f"{watcher.name}: slot {slot_id} {versions}")
    if state["remaining"] < 0 or state["isBooked"] != (state["remaining"] <= 0):
        report("availability", f"{watcher.name}: {state}")
    watcher.last_states[slot_id] = state
    world.run_log.checks["availability states"] += 1


def _check_booking_event(world: World, watcher: Watcher, event: Json) -> None:
    booking_id = raw_id(event["booking"]["id"])
    length = len(event["booking"]["history"])
    if length < watcher.history_lengths.get(booking_id, 0):
        world.run_log.record_violation("booking event goes back", f"{watcher.name}: {event}")
    if event["by"] and raw_id(event["by"]["id"]) == watcher.user.id:
        world.run_log.record_violation("event of an own action", f"{watcher.name}: {event}")
    watcher.history_lengths[booking_id] = length
    watcher.seen_actions[booking_id].add(str(event["action"]).lower())
    world.run_log.checks["booking events"] += 1


def was_connected(watcher: Watcher, at: float) -> bool:
    """Return whether a watcher was connected from a second before this time until long after it."""
    return any(
        since + 1 < at and at + SETTLE_S < until for since, until in watcher.connected_periods
    )
