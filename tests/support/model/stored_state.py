"""The state that MongoDB stores, in a form to compare with the model, and its invariants."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.slots.booking_documents import to_ended_booking
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from tests.support.clients.client import Json
from tests.support.domain.invariants import (
    assert_one_per_choice_group,
    assert_served_in_order,
    assert_valid_history,
    assert_valid_slot,
)
from tests.support.model.execution import normalize_booking
from tests.support.model.operations import NormalizedEntry
from tests.support.model.service_pair import ServicePair


class StoredState:
    """All collections at one time, with the tokens of the ids that were returned to callers."""

    def __init__(self, pair: ServicePair, tokens: dict[str, str]) -> None:
        def load_all(name: str) -> list[Json]:
            return list(pair.database[name].find().sort("_id", 1))

        self._tokens, self._user_ids = tokens, pair.user_ids
        states = map(to_slot_state, load_all("slots"))
        self.slots = {state.id: state for state in states}
        ended = map(to_ended_booking, load_all("ended_bookings"))
        self.ended_bookings = {booking.id: booking for booking in ended}
        self.ended_entries, self.teams = load_all("ended_waitlist_entries"), load_all("teams")
        self.idempotency_records = load_all("idempotency_records")

    def snapshot(self) -> dict[str, object]:
        """Return the whole state in a form that can be compared with the model.

        Only objects that were returned to a caller may exist.
        """
        return {
            **booking_snapshot(self.slots, self.ended_bookings, self._tokens),
            "ended_waitlist_entries": sorted(
                self._tokens[str(each["_id"])] for each in self.ended_entries
            ),
            "teams": {
                self._tokens[str(team["_id"])]: (
                    tuple(str(member["user"]) for member in team["members"]),
                    tuple(self._user_ids[each["email"]] for each in team["invitations"]),
                )
                for team in self.teams
            },
            "idempotency_records": len(self.idempotency_records),
        }

    def assert_consistent(self, now: datetime) -> None:
        """Assert the invariants that hold without knowing the operations."""
        for state in self.slots.values():
            assert_valid_slot(state)
            assert_served_in_order(state, self.ended_bookings.values())
        for booking in self.ended_bookings.values():
            assert_valid_history(booking)
            assert not booking.status.is_live, booking
        assert_one_per_choice_group(self.slots.values(), now)

    def assert_acknowledged_present(self, acknowledged: Mapping[str, tuple[str, str]]) -> None:
        """Assert that every booking that was returned to a caller is live or recorded as ended."""
        live = {each.id: each for state in self.slots.values() for each in state.bookings}
        assert not live.keys() & self.ended_bookings.keys(), "a booking is both live and ended"
        found = {id_: (b.slot_id, b.user_id) for id_, b in (live | self.ended_bookings).items()}
        for id_, slot_and_user in acknowledged.items():
            assert found.get(BookingId(id_)) == slot_and_user, f"{self._tokens[id_]} is lost"
        for record in self.idempotency_records:
            assert set(recorded_booking_ids(record["outcome"])) <= found.keys(), (
                f"a record without its effect: {record}"
            )


def booking_snapshot(
    slots: Mapping[SlotId, SlotState],
    ended_bookings: Mapping[BookingId, Booking],
    tokens: Mapping[str, str],
) -> dict[str, object]:
    """Return bookings and waitlists with tokens for ids, which can be compared."""
    return {
        "bookings": {
            id_: [normalize_booking(each, tokens) for each in state.bookings]
            for id_, state in slots.items()
        },
        "waitlists": {
            id_: [(tokens[each.id], each.user_id, each.since) for each in state.waitlist]
            for id_, state in slots.items()
        },
        "capacity": {id_: state.slot.capacity for id_, state in slots.items()},
        "ended_bookings": {
            tokens[id_]: (each.slot_id, *normalize_booking(each, tokens))
            for id_, each in ended_bookings.items()
        },
    }


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


def recorded_booking_ids(outcome: Any) -> list[str]:
    """Return the ids of the bookings that a recorded outcome created or changed."""
    several = [each["booking"] for each in outcome.get("booked", ())]
    single = [outcome[name] for name in ("booking", "old_booking") if name in outcome]
    return [booking["id"] for booking in (*several, *single)]
