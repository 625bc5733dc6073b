"""Bookings as they lie in the database, live and ended, and whether each one's log is whole."""

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
# What may follow which status, and the status after it.
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
    """One booking with all that happened to it. Ids are in hex."""

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
        """Where it is in its life."""
        return str(self.history[-1]["status"])

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        made: datetime = self.history[0]["at"]
        return made

    @property
    def created_by(self) -> str | None:
        """Who made it."""
        by = self.history[0]["by"]
        return str(by) if by else None

    @property
    def actions(self) -> list[str]:
        """What happened to it, the oldest first."""
        return [str(entry["action"]) for entry in self.history]


def live_records(slot: Json) -> Iterator[BookingRecord]:
    """The bookings in a slot's document: live, unless the slot was called off."""
    off = slot.get("cancellation")
    for entry in slot["bookings"]:
        record = _record(str(entry["id"]), str(slot["_id"]), entry, is_live=off is None)
        if off is not None:
            end = {"at": off["at"], "by": off["by"], "action": "cancelled", "status": "cancelled"}
            record = replace(record, history=[*record.history, end])
        yield record


def ended_record(document: Json) -> BookingRecord:
    """The booking of a document of ended ones."""
    return _record(str(document["_id"]), str(document["slot"]), document, is_live=False)


def _record(booking_id: str, slot_id: str, document: Json, *, is_live: bool) -> BookingRecord:
    plain = [
        {
            "at": document.get("at"),
            "by": document["user"],
            "action": "booked",
            "status": "confirmed",
        }
    ]
    origin, target = (_ref(document.get(name)) for name in ("movedFrom", "movedTo"))
    return BookingRecord(
        booking_id,
        slot_id,
        str(document["user"]),
        is_live,
        document.get("history", plain),
        document.get("waitedSince"),
        origin,
        target,
    )


def _ref(reference: Any) -> str | None:
    return str(reference["id"]) if reference else None


def history_problem(record: BookingRecord) -> str | None:
    """What is wrong with a log, if anything is."""
    first, status = record.history[0], str(record.history[0]["status"])
    if status not in CREATION_STATUSES.get(first["action"], ()):
        return f"begins with {first['action']} to {status}"
    for entry in record.history[1:]:
        if TRANSITIONS.get((entry["action"], status)) != entry["status"]:
            return f"{entry['action']} makes {status} {entry['status']}"
        status = entry["status"]
    if record.is_live != (status in LIVE_STATUSES):
        return f"{'lives' if record.is_live else 'ended'} and is {status}"
    if (status in ("held", "expired")) != ("heldUntil" in record.history[-1]):
        return f"is {status} and {'has' if 'heldUntil' in record.history[-1] else 'has no'} end"
    if (first["action"] in ("promoted", "offered")) != (record.waiting_since is not None):
        return f"begins with {first['action']} and waited since {record.waiting_since}"
    if ((first["action"] == "moved") != bool(record.moved_from)) or (
        (not record.is_live and record.actions[-1] == "moved") != bool(record.moved_to)
    ):
        return f"does not say where it moved: {record.actions}"
    return None
