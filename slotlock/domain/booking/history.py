"""The history of a booking: who changed what, and when.

The history is part of the booking, so that an entry is written together with its change.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slotlock.domain.users.user import UserId


class BookingStatus(StrEnum):
    """The status of a booking."""

    HELD = "held"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_live(self) -> bool:
        """Whether the booking occupies a place."""
        return self in (BookingStatus.HELD, BookingStatus.CONFIRMED)


class BookingAction(StrEnum):
    """What an entry of the history says."""

    BOOKED = "booked"
    HELD = "held"
    PROMOTED = "promoted"
    OFFERED = "offered"
    CONFIRMED = "confirmed"
    EXTENDED = "extended"
    MOVED = "moved"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class BookingLimit(StrEnum):
    """A limit that applies to members and that organizers can override."""

    SLOT_STARTED = "slot_started"
    CANCEL_CUTOFF = "cancel_cutoff"
    ONE_OF_CHOICE = "one_of_choice"
    NOT_YET_OPEN = "not_yet_open"
    CLOSED = "closed"
    NOT_ELIGIBLE = "not_eligible"
    MAX_BOOKINGS = "max_bookings"
    TIME_CONFLICT = "time_conflict"
    GROUP_FULL = "group_full"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change of a booking. `by` is None for the waiting list and for expiry."""

    at: datetime
    by: UserId | None
    action: BookingAction
    status: BookingStatus
    held_until: datetime | None = None
    overridden_limits: tuple[BookingLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """An entry and the entry before it; None for the first."""

    before: HistoryEntry | None
    entry: HistoryEntry


def history_changes(history: tuple[HistoryEntry, ...]) -> Iterator[HistoryChange]:
    """Yield the entries of a history with their predecessors, the oldest first."""
    for index, entry in enumerate(history):
        yield HistoryChange(history[index - 1] if index else None, entry)
