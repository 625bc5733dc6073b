"""What is kept of everything that happens to a booking: who, when, what, before and after.

The record is a part of the booking, so that it is written with the change itself or not at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slotlock.domain.users.user import UserId


class BookingStatus(StrEnum):
    """Whether a booking takes a place."""

    HELD = "held"
    CONFIRMED = "confirmed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def is_live(self) -> bool:
        """Whether nobody else can have its place."""
        return self in (BookingStatus.HELD, BookingStatus.CONFIRMED)


class BookingAction(StrEnum):
    """What happened to a booking."""

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
    """A limit that holds for members and that an organiser can override for somebody."""

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
    """One thing that happened. `by` is None for the waiting list and the clock."""

    at: datetime
    by: UserId | None
    action: BookingAction
    status: BookingStatus
    held_until: datetime | None = None
    overridden_limits: tuple[BookingLimit, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """An entry with what was before it; None when there was no booking yet."""

    before: HistoryEntry | None
    entry: HistoryEntry


def history_changes(history: tuple[HistoryEntry, ...]) -> Iterator[HistoryChange]:
    """A record read from its beginning."""
    for index, entry in enumerate(history):
        yield HistoryChange(history[index - 1] if index else None, entry)
