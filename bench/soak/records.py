"""Bookings as they lie in the database, live and ended, and whether each one's log is whole."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bench.soak.ledger import Json

MAKINGS = {
    "booked": {"confirmed"},
    "held": {"held"},
    "promoted": {"confirmed"},
    "offered": {"held"},
    "moved": {"confirmed", "held"},
}
# What may follow which status, and the status after it.
CHANGES = {
    ("confirmed", "held"): "confirmed",
    ("extended", "held"): "held",
    ("moved", "held"): "cancelled",
    ("moved", "confirmed"): "cancelled",
    ("cancelled", "held"): "cancelled",
    ("cancelled", "confirmed"): "cancelled",
    ("expired", "held"): "expired",
}
LIVE = ("held", "confirmed")


@dataclass(frozen=True, slots=True)
class Record:
    """One booking with all that happened to it. Ids are in hex."""

    id: str
    slot: str
    user: str
    live: bool
    log: list[Json]
    waited: datetime | None
    origin: str | None
    target: str | None

    @property
    def status(self) -> str:
        """Where it is in its life."""
        return str(self.log[-1]["to"])

    @property
    def at(self) -> datetime:
        """When it was made."""
        made: datetime = self.log[0]["at"]
        return made

    @property
    def by(self) -> str | None:
        """Who made it."""
        by = self.log[0]["by"]
        return str(by) if by else None

    @property
    def deeds(self) -> list[str]:
        """What happened to it, the oldest first."""
        return [str(entry["do"]) for entry in self.log]


def live_records(slot: Json) -> Iterator[Record]:
    """The bookings in a slot's document: live, unless the slot was called off."""
    off = slot.get("calledOff")
    for entry in slot["bookings"]:
        record = _record(str(entry["id"]), str(slot["_id"]), entry, live=off is None)
        if off is not None:
            end = {"at": off["at"], "by": off["by"], "do": "cancelled", "to": "cancelled"}
            record = replace(record, log=[*record.log, end])
        yield record


def ended_record(document: Json) -> Record:
    """The booking of a document of ended ones."""
    return _record(str(document["_id"]), str(document["slot"]), document, live=False)


def _record(booking_id: str, slot_id: str, kept: Json, *, live: bool) -> Record:
    plain = [{"at": kept.get("at"), "by": kept["user"], "do": "booked", "to": "confirmed"}]
    origin, target = (_ref(kept.get(name)) for name in ("from", "to"))
    return Record(
        booking_id,
        slot_id,
        str(kept["user"]),
        live,
        kept.get("log", plain),
        kept.get("waited"),
        origin,
        target,
    )


def _ref(kept: Any) -> str | None:
    return str(kept["id"]) if kept else None


def flaw(record: Record) -> str | None:
    """What is wrong with a log, if anything is."""
    first, status = record.log[0], str(record.log[0]["to"])
    if status not in MAKINGS.get(first["do"], ()):
        return f"begins with {first['do']} to {status}"
    for entry in record.log[1:]:
        if CHANGES.get((entry["do"], status)) != entry["to"]:
            return f"{entry['do']} makes {status} {entry['to']}"
        status = entry["to"]
    if record.live != (status in LIVE):
        return f"{'lives' if record.live else 'ended'} and is {status}"
    if (status in ("held", "expired")) != ("until" in record.log[-1]):
        return f"is {status} and {'has' if 'until' in record.log[-1] else 'has no'} end"
    if (first["do"] in ("promoted", "offered")) != (record.waited is not None):
        return f"begins with {first['do']} and waited since {record.waited}"
    if ((first["do"] == "moved") != bool(record.origin)) or (
        (not record.live and record.deeds[-1] == "moved") != bool(record.target)
    ):
        return f"does not say where it moved: {record.deeds}"
    return None
