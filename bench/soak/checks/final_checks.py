"""Everything that is held against the database once it is quiet."""

import asyncio
import time
from collections.abc import Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.soak.campaign import check_unpublished
from bench.soak.checks.acknowledged import check_acknowledged, check_origins
from bench.soak.checks.booking_records import (
    BookingRecord,
    ended_record,
    history_problem,
    live_records,
)
from bench.soak.checks.idempotency import check_keys
from bench.soak.checks.ticket_history import check_tickets
from bench.soak.checks.waitlist import check_duplicates, check_waitlist_order
from bench.soak.clients.watchers import Watcher, was_connected
from bench.soak.processes.chaos import LOCK_KEYS
from bench.soak.run_log import Json
from bench.soak.world import World

SWEEP_TOLERANCE = timedelta(seconds=3)
MAX_GROWTH_MIB = 120.0
MAX_TRACEBACK_LINES = 40
KEY_GONE = -2


async def check_records(
    world: World, slots: list[Json], misordered_pairs: Set[tuple[str, str]]
) -> list[BookingRecord]:
    """All records, once nobody writes any more."""
    ledger, read = world.run_log, asyncio.to_thread
    ended = await read(lambda: list(world.database["ended_bookings"].find()))
    left = await read(lambda: list(world.database["ended_waitlist_entries"].find()))
    kept = await read(_load_recorded_outcomes, world)
    records = [record for slot in slots for record in live_records(slot)]
    records += map(ended_record, ended)
    found = {record.id: record for record in records}
    if len(found) != len(records):
        ledger.record_violation(
            "records", f"{len(records) - len(found)} bookings live twice, or also ended"
        )
    for record in records:
        ledger.checks["logs"] += 1
        if wrong := history_problem(record):
            ledger.record_violation("history", f"booking {record.id} in {record.slot_id} {wrong}")
    turns = {str(turn["_id"]) for turn in left}
    turns |= {str(turn["id"]) for slot in slots for turn in slot["waitlist"]}
    check_acknowledged(ledger, found, turns)
    check_origins(ledger, found)
    check_keys(ledger, set(kept))
    check_tickets(ledger, found, kept)
    check_waitlist_order(ledger, slots, records, left, misordered_pairs)
    check_duplicates(ledger, slots, records)
    check_unpublished(world, slots, records)
    _check_settled(world, slots)
    return records


def _load_recorded_outcomes(world: World) -> dict[str, tuple[str, str | None]]:
    wanted = {"outcome._type": 1, "outcome.booking.id": 1}
    kept = {}
    for document in world.database["idempotency_records"].find({}, wanted):
        outcome = document["outcome"]
        kept[str(document["_id"])] = outcome["_type"], outcome.get("booking", {}).get("id")
    return kept


def _check_settled(world: World, slots: list[Json]) -> None:
    now = datetime.now(UTC)
    for slot in slots:
        open_ = slot["status"] == "published" and now < slot["start"]
        # In the campaign some may wait for others of their class.
        if open_ and slot["remaining"] > 0 and slot["waitlist"] and "campaign" not in slot:
            what = f"slot {slot['_id']}: {slot['remaining']} free, {len(slot['waitlist'])} wait"
            world.run_log.record_violation(
                "free and waiting", f"{what}, next deadline {slot.get('nextDeadline')}"
            )
        for entry in slot["bookings"] if slot["status"] != "cancelled" else ():
            if entry.get("heldUntil") and entry["heldUntil"] < now - SWEEP_TOLERANCE:
                what = f"slot {slot['_id']} ({slot['status']}): {entry['id']} {entry['heldUntil']}"
                world.run_log.record_violation(
                    "not swept up", f"{what}, next deadline {slot.get('nextDeadline')}"
                )


async def count_queue_keys(world: World) -> dict[str, int]:
    """How much there is under each key of the admission queue."""
    left: dict[str, int] = {}
    for kind, count in (("requests", "xlen"), ("dead_letters", "xlen"), ("tickets", "hlen")):
        keys: Any = await asyncio.to_thread(world.redis.keys, f"slotlock:{{queue:*}}:{kind}")
        for key in keys:
            left[key.decode()] = await asyncio.to_thread(getattr(world.redis, count), key)
    return left


async def check_locks(world: World) -> None:
    """Locks that outlived everybody who could hold them: not the turns of those who work on."""
    keys: Any = await asyncio.to_thread(world.redis.keys, LOCK_KEYS)
    for key in sorted(keys):
        text = key.decode()
        if not any(part in text for part in ("{queue:", "{admission:", "{hold-sweeper}")):
            left: Any = await asyncio.to_thread(world.redis.pttl, key)
            if left == KEY_GONE:
                continue
            world.run_log.record_violation("lock left", f"{text} for another {left} ms")


def check_watchers(
    world: World, watchers: list[Watcher], slots: list[Json], records: list[BookingRecord]
) -> None:
    """Who watched slots saw their last state; who watched their bookings was told of it."""
    truth = {str(slot["_id"]): slot for slot in slots}
    for watcher in watchers:
        for name in sorted(watcher.watched_slots) if watcher.watches_slots else ():
            world.run_log.checks["last states watched"] += 1
            is_, seen = truth[name], watcher.last_states.get(name, {})
            for field in ("version", "capacity", "remaining", "status"):
                told = str(seen.get(field)).lower()
                if told != str(is_[field]):
                    what = f"{watcher.name}: slot {name} {field} is {is_[field]}, was told {told}"
                    world.run_log.record_violation("last state", what)
        mine = [r for r in records if r.user_id == watcher.user.id and not watcher.watches_slots]
        for record in mine:
            _check_last_event(world, watcher, record)


def _check_last_event(world: World, watcher: Watcher, record: BookingRecord) -> None:
    last = record.history[-1]
    at, by = last["at"].timestamp(), str(last["by"]) if last["by"] else None
    lasted = (
        at - record.created_at.timestamp() > SWEEP_TOLERANCE.total_seconds()
        or len(record.history) == 1
    )
    mongo = world.run_log.was_mongo_down(at - 3, at + 3)
    if (
        by == record.user_id
        or record.moved_to
        or not lasted
        or mongo
        or not was_connected(watcher, at)
    ):
        return
    world.run_log.checks["last news of bookings"] += 1
    if last["action"] not in watcher.seen_actions[record.id]:
        what = f"{watcher.name}: {record.id} {record.actions} at {last['at']}"
        world.run_log.record_violation(
            "not told", f"{what}, was told {sorted(watcher.seen_actions[record.id])}"
        )


def check_memory(world: World) -> None:
    """No process takes more and more."""
    for app in (*world.apps, world.worker):
        for life in app.process_runs:
            if life.last_mib - life.first_mib > MAX_GROWTH_MIB:
                lasted = (life.ended_at or time.time()) - life.started_at
                what = f"{life.first_mib:.0f} to {life.last_mib:.0f} MiB in {lasted:.0f} s"
                world.run_log.record_violation("memory", f"{app.name}: {what}")


def check_log(world: World, name: str, log_file: Path) -> None:
    """No traceback in a log."""
    lines = log_file.read_text(errors="replace").splitlines()
    for place, line in enumerate(lines):
        if line.startswith("Traceback"):
            here = lines[max(place - 1, 0) : place + MAX_TRACEBACK_LINES]
            world.run_log.record_violation(
                "traceback", "\n    ".join([f"{name} line {place + 1}:", *here])
            )
