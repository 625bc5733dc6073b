"""Checks the history of each booking: it is possible, and goes on from what clients were shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.faults.checker.effects import Effect
from bench.faults.checker.report import Report
from bench.faults.checker.versions import SlotVersion, SlotVersions
from bench.faults.history import Json, raw_id

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


# The end of a booking whose slot was canceled, as responses show it.
CANCELED: Json = {"action": "cancelled", "status": "cancelled"}


@dataclass(frozen=True, slots=True)
class StoredBooking:
    """The last document of a booking, and the slot that it is in."""

    slot_id: str
    document: Json
    is_live: bool
    is_canceled: bool = False

    @property
    def history(self) -> list[Json]:
        """The entries; a booking without changes is stored without them."""
        entry = {"action": "booked", "status": "confirmed", "by": self.document["user"]}
        entries: list[Json] = self.document.get("history") or [entry]
        return [*entries, CANCELED] if self.is_canceled else entries


def check_histories(effects: Sequence[Effect], versions: SlotVersions, report: Report) -> None:
    """Report impossible histories, and those that lack what a response showed."""
    stored: dict[str, StoredBooking] = {}
    for slot_id, of_slot in versions.slots.items():
        for id_, booking in _bookings_of(slot_id, of_slot):
            if booking.is_live and id_ in stored and stored[id_].is_live:
                report.add("live twice", f"{id_} in {stored[id_].slot_id} and {slot_id}")
            stored[id_] = booking
    for id_, document in versions.ended_bookings.items():
        stored[id_] = StoredBooking(str(document["slot"]), document, is_live=False)
    report.counts["histories"] = len(stored)
    for id_, booking in stored.items():
        if problem := _history_problem(booking) or _move_problem(id_, booking, stored):
            report.add("wrong history", f"{id_} {problem}", versions=[booking.document])
    for effect in effects:
        _check_shown(effect, stored, report)


def _bookings_of(
    slot_id: str, versions: Sequence[SlotVersion]
) -> Iterator[tuple[str, StoredBooking]]:
    last = versions[-1]
    for entry in last.document["bookings"]:
        # The bookings of a canceled slot stay in its document as they were.
        is_canceled = last.status == "cancelled"
        yield str(entry["id"]), StoredBooking(slot_id, entry, not is_canceled, is_canceled)


def _history_problem(booking: StoredBooking) -> str | None:
    first, history = booking.history[0], booking.history
    status = first["status"]
    if status not in CREATION_STATUSES.get(first["action"], ()):
        return f"begins with {first['action']} to {status}"
    for entry in history[1:]:
        if TRANSITIONS.get((entry["action"], status)) != entry["status"]:
            return f"{entry['action']} changes {status} to {entry['status']}"
        status = entry["status"]
    if booking.is_live and status not in ("held", "confirmed"):
        return f"is live with status {status}"
    if (status in ("held", "expired")) != bool(history[-1].get("heldUntil")):
        return f"is {status} and held until {history[-1].get('heldUntil')}"
    waited_since = booking.document.get("waitedSince")
    if (first["action"] in ("promoted", "offered")) != bool(waited_since):
        return f"begins with {first['action']} and waited since {waited_since}"
    return None


def _move_problem(id_: str, booking: StoredBooking, stored: dict[str, StoredBooking]) -> str | None:
    """Return whether a booking and the one that it moved to do not name each other."""
    document, history = booking.document, booking.history
    if (history[0]["action"] == "moved") != bool(document.get("movedFrom")):
        return "lacks the booking that it was"
    moved_on = len(history) > 1 and history[-1]["action"] == "moved"
    if moved_on != bool(document.get("movedTo")):
        return "lacks the booking that it became"
    if moved_on:
        new = stored.get(str(document["movedTo"]["id"]))
        if new is None or str((new.document.get("movedFrom") or {}).get("id")) != id_:
            return "became a booking that does not name it"
    return None


def _check_shown(effect: Effect, stored: dict[str, StoredBooking], report: Report) -> None:
    shown = (effect.response or {}).get("booking") if effect.is_accepted else None
    if not shown or "history" not in shown:
        return
    booking = stored.get(raw_id(shown["id"]))
    actions = [entry["action"].lower() for entry in shown["history"]]
    if booking and [entry["action"] for entry in booking.history][: len(actions)] != actions:
        description = f"{shown['id']} lacks what a client was shown: {actions}"
        report.add("wrong history", description, effect.operations, [booking.document])
