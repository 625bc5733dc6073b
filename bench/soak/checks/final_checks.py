"""The checks at the end of the run, when no client sends requests anymore."""

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
from bench.soak.run_log import Json
from bench.soak.world import World

SWEEP_TOLERANCE = timedelta(seconds=3)
MONGO_OUTAGE_TOLERANCE_S = 3.0
MAX_GROWTH_MIB = 120.0
MAX_TRACEBACK_LINES = 40
KEY_GONE = -2
# What a lock leaves in Redis while somebody holds it or waits for it.
LOCK_PATTERNS = ("slotlock:{*}:lock", "slotlock:{*}:queue", "slotlock:{*}:heartbeats")


async def check_records(
    world: World, slots: list[Json], misordered_pairs: Set[tuple[str, str]]
) -> list[BookingRecord]:
    """Compare all bookings of the database with everything that clients received."""
    run_log = world.run_log
    ended_bookings = await _find_all(world, "ended_bookings")
    ended_entries = await _find_all(world, "ended_waitlist_entries")
    recorded_outcomes = await asyncio.to_thread(_load_recorded_outcomes, world)
    records = [record for slot in slots for record in live_records(slot)]
    records += map(ended_record, ended_bookings)
    records_by_id = {record.id: record for record in records}
    if len(records_by_id) != len(records):
        count = len(records) - len(records_by_id)
        run_log.record_violation("records", f"{count} bookings are stored twice")
    for record in records:
        run_log.checks["histories"] += 1
        if problem := history_problem(record):
            run_log.record_violation(
                "history", f"booking {record.id} in {record.slot_id} {problem}"
            )
    waitlist_entry_ids = {str(entry["_id"]) for entry in ended_entries}
    waitlist_entry_ids |= {str(entry["id"]) for slot in slots for entry in slot["waitlist"]}
    check_acknowledged(run_log, records_by_id, waitlist_entry_ids)
    check_origins(run_log, records_by_id)
    check_keys(run_log, set(recorded_outcomes))
    check_tickets(run_log, records_by_id, recorded_outcomes, world.hidden_periods)
    check_waitlist_order(run_log, slots, records, ended_entries, misordered_pairs)
    check_duplicates(run_log, slots, records)
    check_unpublished(world, slots, records)
    _check_settled(world, slots)
    return records


async def _find_all(world: World, collection: str) -> list[Json]:
    return await asyncio.to_thread(lambda: list(world.database[collection].find()))


def _load_recorded_outcomes(world: World) -> dict[str, tuple[str, str | None]]:
    projection = {"outcome._type": 1, "outcome.booking.id": 1}
    recorded = {}
    for document in world.database["idempotency_records"].find({}, projection):
        outcome = document["outcome"]
        recorded[str(document["_id"])] = outcome["_type"], outcome.get("booking", {}).get("id")
    return recorded


def _check_settled(world: World, slots: list[Json]) -> None:
    report, now = world.run_log.record_violation, datetime.now(UTC)
    for slot in slots:
        is_open = slot["status"] == "published" and now < slot["start"]
        deadline = f"next deadline {slot.get('nextDeadline')}"
        # In the campaign, users may wait for their class limit while places are free.
        if is_open and slot["remaining"] > 0 and slot["waitlist"] and "campaign" not in slot:
            counts = f"{slot['remaining']} free, {len(slot['waitlist'])} waiting"
            report("free and waiting", f"slot {slot['_id']}: {counts}, {deadline}")
        for entry in slot["bookings"] if slot["status"] != "cancelled" else ():
            if entry.get("heldUntil") and entry["heldUntil"] < now - SWEEP_TOLERANCE:
                hold = f"{entry['id']} {entry['heldUntil']}"
                report(
                    "hold not expired", f"slot {slot['_id']} ({slot['status']}): {hold}, {deadline}"
                )


async def count_queue_keys(world: World) -> dict[str, int]:
    """Return the number of entries under each key of the admission queue."""
    counts: dict[str, int] = {}
    for kind, command in (("requests", "xlen"), ("dead_letters", "xlen"), ("tickets", "hlen")):
        keys: Any = await asyncio.to_thread(world.redis.keys, f"slotlock:{{queue:*}}:{kind}")
        for key in keys:
            counts[key.decode()] = await asyncio.to_thread(getattr(world.redis, command), key)
    return counts


async def check_locks(world: World) -> None:
    """Check that no lock remains, except those that workers renew."""
    keys: list[Any] = []
    for pattern in LOCK_PATTERNS:
        keys += await asyncio.to_thread(world.redis.keys, pattern)
    for key in sorted(keys):
        text = key.decode()
        if not any(part in text for part in ("{admission:", "{hold-sweeper}")):
            ttl_ms: Any = await asyncio.to_thread(world.redis.pttl, key)
            if ttl_ms != KEY_GONE:
                world.run_log.record_violation("lock left", f"{text} for another {ttl_ms} ms")


def check_watchers(
    world: World, watchers: list[Watcher], slots: list[Json], records: list[BookingRecord]
) -> None:
    """Check that watchers received the last state of their slots, and the last booking events."""
    slots_by_id = {str(slot["_id"]): slot for slot in slots}
    for watcher in watchers:
        for slot_id in sorted(watcher.watched_slots) if watcher.watches_slots else ():
            world.run_log.checks["last states watched"] += 1
            stored, received = slots_by_id[slot_id], watcher.last_states.get(slot_id, {})
            for field in ("version", "capacity", "remaining", "status"):
                value = str(received.get(field)).lower()
                if value != str(stored[field]):
                    world.run_log.record_violation(
                        "last state",
                        f"{watcher.name}: slot {slot_id} {field} is {stored[field]}, "
                        f"received {value}",
                    )
        if not watcher.watches_slots:
            for record in records:
                if record.user_id == watcher.user.id:
                    _check_last_event(world, watcher, record)


def _check_last_event(world: World, watcher: Watcher, record: BookingRecord) -> None:
    last = record.history[-1]
    at, by = last["at"].timestamp(), str(last["by"]) if last["by"] else None
    lasted_long_enough = (
        len(record.history) == 1
        or at - record.created_at.timestamp() > SWEEP_TOLERANCE.total_seconds()
    )
    was_mongo_down = world.run_log.was_mongo_down(
        at - MONGO_OUTAGE_TOLERANCE_S, at + MONGO_OUTAGE_TOLERANCE_S
    )
    if (
        by == record.user_id
        or record.moved_to
        or not lasted_long_enough
        or was_mongo_down
        or not was_connected(watcher, at)
    ):
        return
    world.run_log.checks["last booking events"] += 1
    seen_actions = watcher.seen_actions[record.id]
    if last["action"] not in seen_actions:
        world.run_log.record_violation(
            "event missed",
            f"{watcher.name}: {record.id} {record.actions} at {last['at']}, "
            f"received {sorted(seen_actions)}",
        )


def check_memory(world: World) -> None:
    """Check that no process grows beyond the limit."""
    for app in (*world.apps, world.worker):
        for run in app.process_runs:
            if run.last_mib - run.first_mib > MAX_GROWTH_MIB:
                duration_s = (run.ended_at or time.time()) - run.started_at
                growth = f"{run.first_mib:.0f} to {run.last_mib:.0f} MiB in {duration_s:.0f} s"
                world.run_log.record_violation("memory", f"{app.name}: {growth}")


def check_log(world: World, name: str, log_file: Path) -> None:
    """Check that a log contains no traceback."""
    lines = log_file.read_text(errors="replace").splitlines()
    for index, line in enumerate(lines):
        if line.startswith("Traceback"):
            excerpt = lines[max(index - 1, 0) : index + MAX_TRACEBACK_LINES]
            world.run_log.record_violation(
                "traceback", "\n    ".join([f"{name} line {index + 1}:", *excerpt])
            )
