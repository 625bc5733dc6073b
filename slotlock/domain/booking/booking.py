"""Bookings and waitlist entries, and what decisions know of a user outside their slot."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NewType

from slotlock.domain.booking.history import BookingLimit, BookingStatus, HistoryEntry
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId

# The limits that depend on the other bookings of a user.
OTHER_BOOKING_LIMITS = (
    BookingLimit.ONE_OF_CHOICE,
    BookingLimit.MAX_BOOKINGS,
    BookingLimit.TIME_CONFLICT,
)

SlotId = NewType("SlotId", str)
BookingId = NewType("BookingId", str)
WaitlistEntryId = NewType("WaitlistEntryId", str)


@dataclass(frozen=True, slots=True)
class Booking:
    """The booking of one user in one slot, with its whole history.

    `groups` are the user's groups at the time of booking, if the slot depends on groups.
    """

    id: BookingId
    slot_id: SlotId
    user_id: UserId
    history: tuple[HistoryEntry, ...]
    waited_since: datetime | None = None
    moved_from: "BookingRef | None" = None
    moved_to: "BookingRef | None" = None
    groups: tuple[str, ...] = ()

    @property
    def status(self) -> BookingStatus:
        """The status after the last entry of the history."""
        return self.history[-1].status

    @property
    def held_until(self) -> datetime | None:
        """When the hold expires or expired; None for a booking that is not a hold."""
        return self.history[-1].held_until

    @property
    def created_at(self) -> datetime:
        """When the booking was made."""
        return self.history[0].at

    @property
    def made_by(self) -> UserId | None:
        """The user who made the booking; None for the waiting list."""
        return self.history[0].by

    @property
    def ended_at(self) -> datetime | None:
        """When the booking ended; None while it is live."""
        return None if self.status.is_live else self.history[-1].at

    @property
    def was_forced(self) -> bool:
        """Whether an organizer made it although another booking of the user rules it out."""
        return any(
            limit in OTHER_BOOKING_LIMITS
            for entry in self.history
            for limit in entry.overridden_limits
        )

    def is_expired_at(self, now: datetime) -> bool:
        """Return whether this is a hold that has expired by then."""
        return (
            self.status is BookingStatus.HELD
            and self.held_until is not None
            and self.held_until <= now
        )

    def with_entry(self, entry: HistoryEntry) -> "Booking":
        """Return the booking with one more entry in its history."""
        return replace(self, history=(*self.history, entry))


@dataclass(frozen=True, slots=True)
class BookingRef:
    """The slot and the id of another booking."""

    slot_id: SlotId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class WaitlistEntry:
    """The place of one user in the waiting list of a slot."""

    id: WaitlistEntryId
    slot_id: SlotId
    user_id: UserId
    since: datetime
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedWaitlistEntry:
    """A waitlist entry that ended without a booking.

    `by` is the user who ended it; None for the waiting list itself.
    """

    entry: WaitlistEntry
    at: datetime
    by: UserId | None


@dataclass(frozen=True, slots=True)
class OtherBooking:
    """A booking in another slot, with the fields of that slot that limits depend on."""

    booking: Booking
    choice_group: str | None
    terms: CampaignTerms | None
    meetings: tuple[Meeting, ...]


@dataclass(frozen=True, slots=True)
class UserContext:
    """What a decision depends on outside the slot: the groups and other bookings of a user.

    `version` grows with every booking of the user in a slot where other bookings count. A decision
    that depends on `other_bookings` is written only if the version is still the same.
    """

    user_id: UserId
    groups: tuple[str, ...] = ()
    version: int = 0
    other_bookings: tuple[OtherBooking, ...] = ()
