"""Bookings as the database stores them, live and ended, and the check of their histories."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bench.soak.run_log import Json

CREATION_STATUSES = {
    "booked": {"confirmed"},
    "held": {"held"},
    "promoted": {"confirmed"},
    "offered": {"held"},
    "moved": {"confirmed", "held"},
}
# The status after an action, by the action and the status before it.
TRANSITIONS = {
    ("confirmed", "held"): "confirmed",
    ("extended", "held"): "held",
    ("moved", "held"): "cancelled",
    ("moved", "confirmed"): "cancelled",
    ("cancelled", "held"): "cancelled",
    ("cancelled", "confirmed"): "cancelled",
    ("expired", "held"): "expired",
}
LIVE_STATUSES = ("held", "confirmed")


@dataclass(frozen=True, slots=True)
class BookingRecord:
    """One booking with its history; ids are in hex."""

    id: str
    slot_id: str
    user_id: str
    is_live: bool
    history: list[Json]
    waiting_since: datetime | None
    moved_from: str | None
    moved_to: str | None

    @property
    def status(self) -> str:
        """Return the status after the last action."""
        return str(self.history[-1]["status"])

    @property
    def created_at(self) -> datetime:
        """Return the time of the first action."""
        created_at: datetime = self.history[0]["at"]
        return created_at

    @property
    def created_by(self) -> str | None:
        """Return the user id of the first action, or None for the system."""
        by = self.history[0]["by"]
        return str(by) if by else None

    @property
    def actions(self) -> list[str]:
        """Return all actions, the oldest first."""
        return [str(entry["action"]) for entry in self.history]


def live_records(slot: Json) -> Iterator[BookingRecord]:
    """Yield the bookings in a slot's document, which are live unless the slot is cancelled."""
    cancellation = slot.get("cancellation")
    for entry in slot["bookings"]:
        record = _record(str(entry["id"]), str(slot["_id"]), entry, is_live=cancellation is None)
        if cancellation is not None:
            end = {
                "at": cancellation["at"],
                "by": cancellation["by"],
                "action": "cancelled",
                "status": "cancelled",
            }
            record = replace(record, history=[*record.history, end])
        yield record


def ended_record(document: Json) -> BookingRecord:
    """Return the booking of a document in the collection of ended bookings."""
    return _record(str(document["_id"]), str(document["slot"]), document, is_live=False)


def _record(booking_id: str, slot_id: str, document: Json, *, is_live: bool) -> BookingRecord:
    # The database stores no history for a booking without changes.
    default_history = [
        {
            "at": document.get("at"),
            "by": document["user"],
            "action": "booked",
            "status": "confirmed",
        }
    ]
    return BookingRecord(
        booking_id,
        slot_id,
        str(document["user"]),
        is_live,
        document.get("history", default_history),
        document.get("waitedSince"),
        _referenced_id(document.get("movedFrom")),
        _referenced_id(document.get("movedTo")),
    )


def _referenced_id(reference: Any) -> str | None:
    return str(reference["id"]) if reference else None


def history_problem(record: BookingRecord) -> str | None:
    """Return the first inconsistency of a history, or None."""
    first, status = record.history[0], str(record.history[0]["status"])
    if status not in CREATION_STATUSES.get(first["action"], ()):
        return f"begins with {first['action']} to {status}"
    for entry in record.history[1:]:
        if TRANSITIONS.get((entry["action"], status)) != entry["status"]:
            return f"{entry['action']} changes {status} to {entry['status']}"
        status = entry["status"]
    if record.is_live != (status in LIVE_STATUSES):
        return f"is {'live' if record.is_live else 'ended'} with status {status}"
    if (status in ("held", "expired")) != ("heldUntil" in record.history[-1]):
        return f"is {status} and {'has' if 'heldUntil' in record.history[-1] else 'has no'} end"
    if (first["action"] in ("promoted", "offered")) != (record.waiting_since is not None):
        return f"begins with {first['action']} and waited since {record.waiting_since}"
    if ((first["action"] == "moved") != bool(record.moved_from)) or (
        (not record.is_live and record.actions[-1] == "moved") != bool(record.moved_to)
    ):
        return f"lacks a reference of its move: {record.actions}"
    return None
