"""Redacting the slots that are recorded with an outcome to what the caller may see of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from slotlock.domain.booking.booking import Booking, SlotId, WaitlistEntry
from slotlock.domain.booking.booking_outcomes import AllBooked, SeriesBooked
from slotlock.domain.booking.booking_refusals import SlotOutcome
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.slot_change import EMPTY_CHANGE
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId


def redacted_slots(
    result: CommandResult[object], user_ids: Sequence[UserId]
) -> tuple[SlotState, ...]:
    """Return the slots that the outcome shows, without the bookings and entries of other users."""
    return SlotRedactor(result.slots).shown_slots(result.outcome, user_ids)


class SlotRedactor:
    """Redacts the same slots for many users: the time for each does not grow with the bookings."""

    def __init__(self, slots: Mapping[SlotId, SlotState]) -> None:
        self._slots = slots
        self._redactions: dict[SlotId, _Redaction] = {}

    def shown_slots(self, outcome: object, user_ids: Sequence[UserId]) -> tuple[SlotState, ...]:
        """Return the slots that the outcome shows, redacted for these users."""
        if not isinstance(outcome, SlotOutcome | AllBooked | SeriesBooked):
            return ()
        shown: list[SlotState] = []
        for slot_id in dict.fromkeys(outcome.shown_slot_ids):
            found = self._redactions.get(slot_id)
            if found is None:
                found = self._redactions[slot_id] = _Redaction(self._slots[slot_id])
            shown.append(found.redact(user_ids))
        return tuple(shown)


class _Redaction:
    def __init__(self, state: SlotState) -> None:
        # Everyone may see who booked a slot with one place.
        self._is_public = state.slot.capacity == 1
        self._state = replace(
            state, waitlist=(), loaded_waitlist=0, group_counts={}, change=EMPTY_CHANGE
        )
        self._bookings = {} if self._is_public else _indexes_by_user(state.bookings)
        self._waitlist = state.waitlist
        self._entries = _indexes_by_user(state.waitlist) if state.waitlist else {}

    def redact(self, user_ids: Sequence[UserId]) -> SlotState:
        """Return the slot with the rows of these users, in their order."""
        shown = self._state
        if not self._is_public:
            rows = _rows_of(self._bookings, user_ids)
            shown = replace(shown, bookings=tuple([shown.bookings[n] for n in rows]))
        if self._entries:
            rows = _rows_of(self._entries, user_ids)
            shown = replace(shown, waitlist=tuple([self._waitlist[n] for n in rows]))
        return shown


def _indexes_by_user(rows: Iterable[Booking | WaitlistEntry]) -> dict[UserId, list[int]]:
    indexes: dict[UserId, list[int]] = {}
    for index, row in enumerate(rows):
        indexes.setdefault(row.user_id, []).append(index)
    return indexes


def _rows_of(indexes: Mapping[UserId, Sequence[int]], user_ids: Iterable[UserId]) -> list[int]:
    return sorted({index for user_id in user_ids for index in indexes.get(user_id, ())})
