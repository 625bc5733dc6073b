"""Watchers over WebSockets, who come back when they are cut off, and what they may be told."""

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

from bench.soak import documents
from bench.soak.ledger import Json, hex_of
from bench.soak.world import Person, World

BACK_AFTER_S = 0.3
MOST_SLOTS = 100
SETTLED_S = 3.0


@dataclass(slots=True)
class Watcher:
    """Somebody who watches slots, or their own bookings, from one process after the other."""

    name: str
    person: Person
    slots: bool
    watching: set[str] = field(default_factory=set)
    states: dict[str, Json] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    told: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    spans: list[list[float]] = field(default_factory=list)  # from when to when it was connected
    messages: int = 0
    times: int = 0


async def watch(world: World, watcher: Watcher, stop: asyncio.Event) -> None:
    """Watch until told to stop."""
    rng = world.rng(watcher.name)
    while not stop.is_set():
        app = rng.choice([app for app in world.apps if app.up] or world.apps)
        with suppress(OSError, WebSocketException, TimeoutError, EOFError):
            await _watch_once(world, watcher, app.socket_url, rng.uniform(5, 60), stop)
        if watcher.spans and watcher.spans[-1][1] == float("inf"):
            watcher.spans[-1][1] = time.time()
        await asyncio.sleep(BACK_AFTER_S)


@asynccontextmanager
async def subscribed(url: str, token: str, asked: Json) -> AsyncIterator[ClientConnection]:
    """A connection that has subscribed to one thing."""
    protocols = [Subprotocol("graphql-transport-ws")]
    async with connect(url, subprotocols=protocols, proxy=None, open_timeout=10) as socket:
        payload = {"authorization": f"Bearer {token}"}
        await socket.send(json.dumps({"type": "connection_init", "payload": payload}))
        await asyncio.wait_for(socket.recv(), 10)
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": asked}))
        yield socket


async def _watch_once(
    world: World, watcher: Watcher, url: str, for_s: float, stop: asyncio.Event
) -> None:
    watcher.watching = set(world.slots[:MOST_SLOTS])
    known = [f"slot_{slot}" for slot in sorted(watcher.watching)]
    asked: Json = {"query": documents.NEWS}
    if watcher.slots:
        asked = {"query": documents.WATCH, "variables": {"slots": known}}
    async with subscribed(url, watcher.person.token, asked) as socket:
        watcher.times += 1
        watcher.spans.append([time.time(), float("inf")])
        until = time.monotonic() + for_s
        while not stop.is_set() and (world.closing.is_set() or time.monotonic() < until):
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    message = json.loads(await socket.recv())
                    if message["type"] in ("complete", "error"):
                        return
                    if message["type"] == "ping":
                        await socket.send(json.dumps({"type": "pong"}))
                    _hear(world, watcher, message)


def _hear(world: World, watcher: Watcher, message: Json) -> None:
    data: Any = message.get("payload", {}).get("data") or {}
    for state in data.values():
        watcher.messages += 1
        if watcher.slots:
            _hear_slot(world, watcher, state)
        else:
            _hear_booking(world, watcher, state)


def _hear_slot(world: World, watcher: Watcher, state: Json) -> None:
    slot, tell = hex_of(state["slotId"]), world.ledger.violation
    before = watcher.states.get(slot)
    if before and state["version"] < before["version"]:
        what = f"{watcher.name}: slot {slot} version {state['version']} after {before['version']}"
        tell("watch goes back", what)
    if state["remaining"] < 0 or state["isBooked"] != (state["remaining"] <= 0):
        tell("watch", f"{watcher.name}: {state}")
    watcher.states[slot] = state
    world.ledger.checks["states watched"] += 1


def _hear_booking(world: World, watcher: Watcher, news: Json) -> None:
    booking = hex_of(news["booking"]["id"])
    length = len(news["booking"]["history"])
    if length < watcher.lengths.get(booking, 0):
        world.ledger.violation("news goes back", f"{watcher.name}: {news}")
    if news["by"] and hex_of(news["by"]["id"]) == watcher.person.id:
        world.ledger.violation("news of oneself", f"{watcher.name}: {news}")
    watcher.lengths[booking] = length
    watcher.told[booking].add(str(news["what"]).lower())
    world.ledger.checks["news of bookings"] += 1


def was_there(watcher: Watcher, at: float) -> bool:
    """Whether it was connected well before this time and for long enough after it."""
    return any(since + 1 < at and at + SETTLED_S < until for since, until in watcher.spans)
