"""The deployments that are compared: each doubles, or multiplies, one or two quantities."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from multiprocessing.connection import Connection
from threading import Event, Thread
from urllib.parse import urlsplit

from bson import ObjectId
from pymongo import MongoClient

from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import SLOTLOCK_SHAPE, Document, SlotRange, TargetSlots
from bench.scale.counters import Rates, measure
from bench.scale.watchers import Watch, watch_slots

SETTINGS = {
    **slotlock_target.RATE_LIMITS_OFF,
    "SLOTLOCK_MAX_SOCKETS": "20000",
    "SLOTLOCK_STREAMS_PER_ADDRESS": "19999",
}
SETTLE_S, MEASURE_S = 3.0, 8.0
# Changes are written to slots that nobody watches, a group at a time.
CHANGED_SLOTS, CHANGES_AT_ONCE = 500, 10
SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Case:
    """A deployment. Each socket watches one slot; `users` of them are signed in."""

    processes: int = 1
    slots: int = 1_000
    sockets: int = 0
    users: int = 0
    changes: int = 0

    @property
    def database_name(self) -> str:
        """The database with so many slots."""
        return f"scale_{self.slots}"


SMALL = {"processes": 1, "slots": 1_000, "sockets": 200, "users": 200, "changes": 0}
LARGE = {"processes": 3, "slots": 30_000, "sockets": 2_000, "users": 2_000, "changes": 40}
# Users have a socket each, and slots and changes have a watcher in each process.
_BASES = {
    "slots": Case(sockets=200),
    "sockets": Case(sockets=200),
    "users": Case(sockets=200, users=200),
    "changes": Case(sockets=200),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A quantity at two sizes, each with few processes and with many."""

    quantity: str

    @property
    def sizes(self) -> tuple[int, int]:
        """The small and the large size."""
        return SMALL[self.quantity], LARGE[self.quantity]

    def case(self, processes: int, size: int) -> Case:
        """Return the deployment of one size."""
        base = _BASES[self.quantity]
        sockets = size if self.quantity in ("sockets", "users") else base.sockets
        grown = {self.quantity: size, "sockets": sockets, "processes": processes}
        return replace(base, **grown)


PAIRS = tuple(map(Pair, _BASES))


def run(case: Case, servers: BenchmarkServers, first_day: datetime) -> Rates:
    """Measure a deployment at rest; raises TargetAppError."""
    _seed(case, servers.client, first_day)
    command = slotlock_target.command(servers.embedded, 1, SETTINGS, case.database_name)
    with ExitStack() as stack:
        apps = [
            stack.enter_context(running(f"scale-{number}", command, servers.folder))
            for number in range(case.processes)
        ]
        tokens = slotlock_target.tokens(servers.embedded, case.users, case.database_name)
        for number, app in enumerate(apps):
            numbers = range(number, case.sockets, case.processes)
            if numbers:
                stack.enter_context(open_sockets(numbers, tokens, app))
        if case.changes:
            stack.enter_context(_changing(case, servers))
        time.sleep(SETTLE_S)
        own_updates = {"mongo update": case.changes} if case.changes else {}
        return measure(apps, servers, MEASURE_S, own_updates)


def _seed(case: Case, client: MongoClient[Document], first_day: datetime) -> None:
    if client[case.database_name]["slots"].find_one() is None:
        slots = TargetSlots(client, case.database_name, SLOTLOCK_SHAPE, first_day)
        slots.seed(SlotRange(0, max(case.slots, LARGE["sockets"]) + CHANGED_SLOTS))


@contextmanager
def open_sockets(
    numbers: range, tokens: Sequence[str], app: TargetApp, first_slot: int = CHANGED_SLOTS
) -> Iterator[None]:
    """Open sockets in a process of its own, each with a slot of its own."""
    slot_ids = tuple(f"slot_{_slot_id(first_slot + number)}" for number in numbers)
    own_tokens = tuple(tokens[number] for number in numbers if number < len(tokens))
    watch = Watch(urlsplit(app.url).port or 80, slot_ids, own_tokens)
    pipe: Connection
    pipe, other_end = SPAWN.Pipe()
    process = SPAWN.Process(target=watch_slots, args=(other_end, watch), daemon=True)
    process.start()
    other_end.close()
    try:
        pipe.recv()
        yield
    finally:
        process.kill()
        process.join()


@contextmanager
def _changing(case: Case, servers: BenchmarkServers) -> Iterator[None]:
    """Write new versions of slots that nobody watches, so many a second."""
    ended = Event()
    slots = servers.client[case.database_name]["slots"]

    def write() -> None:
        next_at, number = time.monotonic(), 0
        while not ended.wait(max(next_at - time.monotonic(), 0.0)):
            for _ in range(CHANGES_AT_ONCE):
                slots.update_one(
                    {"_id": _slot_id(number % CHANGED_SLOTS)}, {"$inc": {"version": 1}}
                )
                number += 1
            next_at += CHANGES_AT_ONCE / case.changes

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _slot_id(number: int) -> ObjectId:
    return ObjectId(f"{number:024x}")
