"""The state that MongoDB stores, in a form to compare with the model, and its invariants."""

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

from bson import ObjectId

from tests.support.clients.client import Json
from tests.support.model.operations import NormalizedEntry
from tests.support.model.service_pair import ServicePair

# The actions that may begin the history of a booking, and those that may follow a status.
FIRST_ACTIONS = {"booked", "held", "promoted", "offered", "moved"}
NEXT_ACTIONS = {
    "held": {"confirmed", "extended", "cancelled", "moved", "expired"},
    "confirmed": {"cancelled", "moved"},
}


class StoredState:
    """All collections at one time, with the tokens of the ids that were returned to callers."""

    def __init__(self, pair: ServicePair, tokens: dict[str, str]) -> None:
        def load_all(name: str) -> list[Json]:
            return list(pair.database[name].find().sort("_id", 1))

        self._tokens = tokens
        self._user_ids_by_email = {email: user_id for user_id, email in pair.emails.items()}
        self.slots, self.ended_bookings = load_all("slots"), load_all("ended_bookings")
        self.ended_waitlist_entries, self.teams = (
            load_all("ended_waitlist_entries"),
            load_all("teams"),
        )
        self.idempotency_records = load_all("idempotency_records")

    def token_for(self, id_: ObjectId) -> str:
        """Return the token of an id. Only objects that were returned to a caller may exist."""
        assert str(id_) in self._tokens, f"{id_} was written and not returned to a caller"
        return self._tokens[str(id_)]

    def snapshot(self) -> dict[str, object]:
        """Return the whole state in a form that can be compared with the model."""
        slots = {str(slot["_id"]): slot for slot in self.slots}
        return {
            "bookings": {
                id_: [self._booking_tuple(booking) for booking in slot["bookings"]]
                for id_, slot in slots.items()
            },
            "waitlists": {
                id_: [
                    (self.token_for(t["id"]), str(t["user"]), t["since"]) for t in slot["waitlist"]
                ]
                for id_, slot in slots.items()
            },
            "capacity": {id_: slot["capacity"] for id_, slot in slots.items()},
            "ended_bookings": {
                self.token_for(booking["_id"]): (
                    str(booking["slot"]),
                    *self._booking_tuple(booking),
                )
                for booking in self.ended_bookings
            },
            "ended_waitlist_entries": sorted(
                self.token_for(entry["_id"]) for entry in self.ended_waitlist_entries
            ),
            "teams": {
                self.token_for(team["_id"]): (
                    [str(member["user"]) for member in team["members"]],
                    [
                        self._user_ids_by_email[invitation["email"]]
                        for invitation in team["invitations"]
                    ],
                )
                for team in self.teams
            },
            "idempotency_records": len(self.idempotency_records),
        }

    def _booking_tuple(self, booking: Json) -> tuple[object, ...]:
        token = self.token_for(booking.get("id") or booking["_id"])
        return (token, str(booking["user"]), booking_history(booking))

    def assert_consistent(self, now: datetime) -> None:
        """Assert the invariants that hold without knowing the operations."""
        for slot in self.slots:
            assert_valid_slot(slot, now)
        for booking in self.ended_bookings:
            history = booking_history(booking)
            assert_valid_history(history)
            assert history[-1].status in ("cancelled", "expired"), booking
            assert history[-1].at == booking["endedAt"], booking
        assert_one_per_choice_group(self.slots, now)

    def assert_acknowledged_present(self, acknowledged: dict[str, tuple[str, str]]) -> None:
        """Assert that every booking that was returned to a caller is live or recorded as ended."""
        live = {
            str(booking["id"]): (str(slot["_id"]), str(booking["user"]))
            for slot in self.slots
            for booking in slot["bookings"]
        }
        ended = {str(b["_id"]): (str(b["slot"]), str(b["user"])) for b in self.ended_bookings}
        assert not live.keys() & ended.keys(), "a booking is both live and ended"
        for id_, slot_and_user in acknowledged.items():
            assert (live | ended).get(id_) == slot_and_user, f"{self._tokens[id_]} is lost"
        for record in self.idempotency_records:
            for id_ in recorded_booking_ids(record["outcome"]):
                assert id_ in live or id_ in ended, f"a record without its effect: {record}"


def booking_history(booking: Json) -> tuple[NormalizedEntry, ...]:
    """Return the history of a booking. A booking without one was booked by its user."""
    if "history" not in booking:
        return (NormalizedEntry(booking["at"], str(booking["user"]), "booked", "confirmed"),)
    return tuple(
        NormalizedEntry(
            entry["at"],
            entry["by"] and str(entry["by"]),
            entry["action"],
            entry["status"],
            entry.get("heldUntil"),
            tuple(entry.get("overriddenLimits", ())),
        )
        for entry in booking["history"]
    )


def assert_valid_slot(slot: Json, now: datetime) -> None:
    """Assert capacity, one booking and one waitlist entry per user, and no ignored waitlist."""
    bookings = slot["bookings"]
    live = [b for b in bookings if "heldUntil" not in b or b["heldUntil"] > now]
    assert len(live) <= len(bookings) <= slot["capacity"], f"above capacity: {slot}"
    assert slot["remaining"] == slot["capacity"] - len(bookings), f"miscounted: {slot}"
    booked = Counter(str(b["user"]) for b in bookings)
    waiting = Counter(str(entry["user"]) for entry in slot["waitlist"])
    assert all(count == 1 for count in (*booked.values(), *waiting.values())), f"twice: {slot}"
    if slot["status"] == "published" and slot["changedAt"] < slot["start"]:
        assert not (slot["remaining"] and slot["waitlist"]), (
            f"free place although users wait: {slot}"
        )
    for booking in bookings:
        history = booking_history(booking)
        assert_valid_history(history)
        assert history[-1].status in ("held", "confirmed"), slot
        assert history[-1].held_until == booking.get("heldUntil"), slot
    if slot["status"] != "cancelled":  # whose holds no longer expire
        ends = [held_until for b in bookings if (held_until := b.get("heldUntil"))]
        assert not ends or slot["nextDeadline"] <= min(ends), f"no sweep is due: {slot}"


def assert_valid_history(history: tuple[NormalizedEntry, ...]) -> None:
    """Assert that each entry of a history may follow the one before it."""
    assert history[0].action in FIRST_ACTIONS, history
    for before, entry in pairwise(history):
        assert entry.action in NEXT_ACTIONS[before.status], history
        assert before.at <= entry.at, history
        assert entry.by is not None or entry.action == "expired", history
    assert all(
        (entry.held_until is None) == (entry.status not in ("held", "expired")) for entry in history
    ), history


def assert_one_per_choice_group(slots: list[Json], now: datetime) -> None:
    """Assert one booking per user and choice group, not counting those that override the limit."""
    bookings = Counter(
        (slot.get("choiceGroup"), str(booking["user"]))
        for slot in slots
        if slot.get("choiceGroup") and slot["status"] != "cancelled"
        for booking in slot["bookings"]
        if "heldUntil" not in booking or booking["heldUntil"] > now
        if not any("one_of_choice" in entry.overridden for entry in booking_history(booking))
    )
    assert max(bookings.values(), default=1) == 1, f"two bookings in a choice group: {bookings}"


def recorded_booking_ids(outcome: Any) -> list[str]:
    """Return the ids of the bookings that a recorded outcome created or changed."""
    several = [each["booking"] for each in outcome.get("booked", ())]
    single = [outcome[name] for name in ("booking", "old_booking") if name in outcome]
    return [booking["id"] for booking in (*several, *single)]
