"""Everything that is held against the database once it is quiet."""

import asyncio
import time
from collections.abc import Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.soak.campaign import check_shut
from bench.soak.chaos import LOCKS
from bench.soak.keys import check_keys
from bench.soak.ledger import Json
from bench.soak.lines import check_turns, check_twice
from bench.soak.promises import check_origins, check_promises
from bench.soak.records import Record, ended_record, flaw, live_records
from bench.soak.tickets import check_tickets
from bench.soak.watch import Watcher, was_there
from bench.soak.world import World

SWEPT_WITHIN = timedelta(seconds=3)
MOST_GROWTH_MIB = 120.0
LINES_OF_TRACEBACK = 40
GONE = -2


async def check_records(
    world: World, slots: list[Json], untimely: Set[tuple[str, str]]
) -> list[Record]:
    """All records, once nobody writes any more."""
    ledger, read = world.ledger, asyncio.to_thread
    ended = await read(lambda: list(world.truth["endedBookings"].find()))
    left = await read(lambda: list(world.truth["endedWaits"].find()))
    kept = await read(_kept_answers, world)
    records = [record for slot in slots for record in live_records(slot)]
    records += map(ended_record, ended)
    found = {record.id: record for record in records}
    if len(found) != len(records):
        ledger.violation(
            "records", f"{len(records) - len(found)} bookings live twice, or also ended"
        )
    for record in records:
        ledger.checks["logs"] += 1
        if wrong := flaw(record):
            ledger.violation("log", f"booking {record.id} in {record.slot} {wrong}")
    turns = {str(turn["_id"]) for turn in left}
    turns |= {str(turn["id"]) for slot in slots for turn in slot["waiting"]}
    check_promises(ledger, found, turns)
    check_origins(ledger, found)
    check_keys(ledger, set(kept))
    check_tickets(ledger, found, kept)
    check_turns(ledger, slots, records, left, untimely)
    check_twice(ledger, slots, records)
    check_shut(world, slots, records)
    _check_settled(world, slots)
    return records


def _kept_answers(world: World) -> dict[str, tuple[str, str | None]]:
    wanted = {"outcome._is": 1, "outcome.booking.id": 1}
    kept = {}
    for document in world.truth["answers"].find({}, wanted):
        outcome = document["outcome"]
        kept[str(document["_id"])] = outcome["_is"], outcome.get("booking", {}).get("id")
    return kept


def _check_settled(world: World, slots: list[Json]) -> None:
    now = datetime.now(UTC)
    for slot in slots:
        open_ = slot["status"] == "published" and now < slot["start"]
        # In the campaign some may wait for others of their class.
        if open_ and slot["remaining"] > 0 and slot["waiting"] and "campaign" not in slot:
            what = f"slot {slot['_id']}: {slot['remaining']} free, {len(slot['waiting'])} wait"
            world.ledger.violation("free and waiting", f"{what}, due {slot.get('due')}")
        for entry in slot["bookings"] if slot["status"] != "cancelled" else ():
            if entry.get("until") and entry["until"] < now - SWEPT_WITHIN:
                what = f"slot {slot['_id']} ({slot['status']}): {entry['id']} {entry['until']}"
                world.ledger.violation("not swept up", f"{what}, due {slot.get('due')}")


async def look_at_line(world: World) -> dict[str, int]:
    """How much there is under each key of the admission queue."""
    left: dict[str, int] = {}
    for kind, count in (("requests", "xlen"), ("aside", "xlen"), ("tickets", "hlen")):
        keys: Any = await asyncio.to_thread(world.redis.keys, f"slotlock:{{queue:*}}:{kind}")
        for key in keys:
            left[key.decode()] = await asyncio.to_thread(getattr(world.redis, count), key)
    return left


async def check_locks(world: World) -> None:
    """Locks that outlived everybody who could hold them: not the turns of those who work on."""
    keys: Any = await asyncio.to_thread(world.redis.keys, LOCKS)
    for key in sorted(keys):
        text = key.decode()
        if not any(part in text for part in ("fence", "{queue:", "{sweep}")):
            left: Any = await asyncio.to_thread(world.redis.pttl, key)
            if left == GONE:
                continue
            world.ledger.violation("lock left", f"{text} for another {left} ms")


def check_watchers(
    world: World, watchers: list[Watcher], slots: list[Json], records: list[Record]
) -> None:
    """Who watched slots saw their last state; who watched their bookings was told of it."""
    truth = {str(slot["_id"]): slot for slot in slots}
    for watcher in watchers:
        for name in sorted(watcher.watching) if watcher.slots else ():
            world.ledger.checks["last states watched"] += 1
            is_, seen = truth[name], watcher.states.get(name, {})
            for field in ("version", "capacity", "remaining", "status"):
                told = str(seen.get(field)).lower()
                if told != str(is_[field]):
                    what = f"{watcher.name}: slot {name} {field} is {is_[field]}, was told {told}"
                    world.ledger.violation("last state", what)
        mine = [r for r in records if r.user == watcher.person.id and not watcher.slots]
        for record in mine:
            _check_news(world, watcher, record)


def _check_news(world: World, watcher: Watcher, record: Record) -> None:
    last = record.log[-1]
    at, by = last["at"].timestamp(), str(last["by"]) if last["by"] else None
    lasted = at - record.at.timestamp() > SWEPT_WITHIN.total_seconds() or len(record.log) == 1
    mongo = world.ledger.was_away(at - 3, at + 3)
    if by == record.user or record.target or not lasted or mongo or not was_there(watcher, at):
        return
    world.ledger.checks["last news of bookings"] += 1
    if last["do"] not in watcher.told[record.id]:
        what = f"{watcher.name}: {record.id} {record.deeds} at {last['at']}"
        world.ledger.violation("not told", f"{what}, was told {sorted(watcher.told[record.id])}")


def check_memory(world: World) -> None:
    """No process takes more and more."""
    for app in (*world.apps, world.worker):
        for life in app.lives:
            if life.last - life.first > MOST_GROWTH_MIB:
                lasted = (life.ended or time.time()) - life.began
                what = f"{life.first:.0f} to {life.last:.0f} MiB in {lasted:.0f} s"
                world.ledger.violation("memory", f"{app.name}: {what}")


def check_log(world: World, name: str, log_file: Path) -> None:
    """No traceback in a log."""
    lines = log_file.read_text(errors="replace").splitlines()
    for place, line in enumerate(lines):
        if line.startswith("Traceback"):
            here = lines[max(place - 1, 0) : place + LINES_OF_TRACEBACK]
            world.ledger.violation("traceback", "\n    ".join([f"{name} line {place + 1}:", *here]))
