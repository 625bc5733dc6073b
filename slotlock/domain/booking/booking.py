"""Bookings, the places that people have, and turns in the line of those who wait for one."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NewType

from slotlock.domain.booking.history import BookingLimit, BookingStatus, HistoryEntry
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId

# The limits that a person's other places set.
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
    """One person's place in one slot, with everything that ever happened to it.

    `groups` are those that its person had when it was made, where its slot asks for groups.
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
        """Whether it takes a place, and whether for good."""
        return self.history[-1].status

    @property
    def held_until(self) -> datetime | None:
        """When the hold runs out, or ran out; None for one that is no hold."""
        return self.history[-1].held_until

    @property
    def created_at(self) -> datetime:
        """When it was made."""
        return self.history[0].at

    @property
    def made_by(self) -> UserId | None:
        """Who made it; None for the waiting list."""
        return self.history[0].by

    @property
    def ended_at(self) -> datetime | None:
        """When it gave its place back."""
        return None if self.status.is_live else self.history[-1].at

    @property
    def was_forced(self) -> bool:
        """Whether an organiser gave it although other places of the person rule it out."""
        return any(
            limit in OTHER_BOOKING_LIMITS
            for entry in self.history
            for limit in entry.overridden_limits
        )

    def is_expired_at(self, now: datetime) -> bool:
        """Whether it is a hold whose time is over."""
        return (
            self.status is BookingStatus.HELD
            and self.held_until is not None
            and self.held_until <= now
        )

    def with_entry(self, entry: HistoryEntry) -> "Booking":
        """The booking after one more thing happened to it."""
        return replace(self, history=(*self.history, entry))


@dataclass(frozen=True, slots=True)
class BookingRef:
    """Where another booking is found."""

    slot_id: SlotId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class WaitlistEntry:
    """One person's turn in the waiting list of a slot."""

    id: WaitlistEntryId
    slot_id: SlotId
    user_id: UserId
    since: datetime
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndedWaitlistEntry:
    """A turn in the waiting list that ended without a place: when, and who ended it."""

    entry: WaitlistEntry
    at: datetime
    by: UserId | None


@dataclass(frozen=True, slots=True)
class OtherBooking:
    """A booking in another slot, with what of that slot bears on this one."""

    booking: Booking
    choice_group: str | None
    terms: CampaignTerms | None
    meetings: tuple[Meeting, ...]


@dataclass(frozen=True, slots=True)
class UserContext:
    """What a decision needs to know of a person beyond the slot: their groups and other places.

    `version` grows with every booking they make where other bookings count: what was decided on
    these places may be written only while it is the newest.
    """

    user_id: UserId
    groups: tuple[str, ...] = ()
    version: int = 0
    other_bookings: tuple[OtherBooking, ...] = ()
