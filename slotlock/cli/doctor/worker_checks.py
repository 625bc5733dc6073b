"""Checks of what workers do: what they cannot read, and with what they cannot go on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from slotlock.cli.doctor.finding import Finding, ok, warning
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.outbox.outbox_repository import UNREADABLE
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import SlotChangesReader

# A closing or a publication takes minutes at most.
MAX_DRAW_AGE = timedelta(minutes=10)
SHOWN_FOR = timedelta(days=7)
MAX_NAMED = 3


async def check_workers(database: Database) -> AsyncIterator[Finding]:
    """Yield a finding for each kind of work. Raises: PyMongoError."""
    now = datetime.now(UTC)
    yield await _check_reader(database, now)
    yield await _check_entries(database)
    yield await _check_draws(database, now)


async def _check_reader(database: Database, now: datetime) -> Finding:
    unread = await SlotChangesReader(database).find_unread(now - SHOWN_FOR)
    if not unread:
        return ok("outbox reader", "it has read all changes")
    names = _named([f"{each.what} ({each.reason})" for each in unread])
    advice = "nothing about it was sent; the log of the worker has the whole error"
    return warning("outbox reader", f"it could not read {names}", advice)


async def _check_entries(database: Database) -> Finding:
    query = {"dueAt": {"$exists": True}, "note": {"$regex": f"^{UNREADABLE}"}}
    found = await database["outbox"].find(query, {"note": 1}, limit=MAX_NAMED + 1).to_list()
    if not found:
        return ok("outbox entries", "all can be read")
    names = _named([f"{each['_id']} ({each['note']})" for each in found])
    advice = "is a process of a newer release missing? They are tried again each hour"
    return warning("outbox entries", names, advice)


async def _check_draws(database: Database, now: datetime) -> Finding:
    query = {"dueAt": {"$lte": now - MAX_DRAW_AGE}}
    found = await database["draws"].find(query, {"campaign": 1}, sort=[("dueAt", 1)]).to_list()
    if not found:
        return ok("draws", "none waits for a worker")
    names = _named([f"draw {each['_id']} of campaign_{each['campaign']}" for each in found])
    advice = "the log of the worker says why; does `slotlock worker` run?"
    return warning("draws", f"{names}: no worker could go on", advice)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
