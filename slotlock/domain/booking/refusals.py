"""The reasons for which a command is refused."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.slot import Slot
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId


@dataclass(frozen=True, slots=True)
class Locked:
    """Other commands are changing the slot; the client can retry after the pause."""

    slot_id: SlotId
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class QueueFull:
    """The admission queue of the slot is full; the client can retry after the pause."""

    slot_id: SlotId
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The idempotency key was used for another request."""

    key: str


@dataclass(frozen=True, slots=True)
class SlotNotFound:
    """The slot does not exist, or the caller may not see it."""

    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class SlotFull:
    """Every place is booked, or belongs to users on the waiting list."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class AlreadyBooked:
    """The user has a live booking in this slot."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The user has as many bookings as a choice group or a campaign allows.

    `booking` is the user's booking in the choice group. It is None for a campaign, and if it
    belongs to another claim of the same request.
    """

    limit: int
    booking: Booking | None
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotStarted:
    """The slot has started."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotYetOpen:
    """The campaign accepts bookings from `opens_at`."""

    opens_at: datetime
    slot: Slot


@dataclass(frozen=True, slots=True)
class Closed:
    """The campaign is closed, or was not published at the time of the decision."""

    closes_at: datetime
    slot: Slot
    published: bool = True


@dataclass(frozen=True, slots=True)
class NotEligible:
    """The user is in none of the groups that the campaign is for."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class GroupFull:
    """The slot has as many bookings of this group as its limit allows."""

    group: str
    limit: int
    slot: Slot


@dataclass(frozen=True, slots=True)
class TimeConflict:
    """A meeting of the slot overlaps a meeting of another slot that the user has booked.

    `booking` is None if it belongs to another claim of the same request.
    """

    booking: Booking | None
    meeting: Meeting
    other_meeting: Meeting
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotCancelled:
    """The slot was cancelled."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotTeammate:
    """The user is not in a team with the caller."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class UserNotFound:
    """There is no user with this id."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class UserBanned:
    """The user is banned."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class BookingNotFound:
    """The slot has no such booking, or the caller may not change it."""

    slot_id: SlotId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class HoldLimitReached:
    """The hold cannot be extended."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class NotHeld:
    """The booking is confirmed, so there is nothing to extend."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """The hold has expired."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class CutoffPassed:
    """The cutoff has passed: only organizers can cancel the booking."""

    cutoff: datetime
    slot: Slot


@dataclass(frozen=True, slots=True)
class AlreadyWaiting:
    """The user is on the waiting list."""

    entry: WaitlistEntry
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotNotFull:
    """The slot has a free place that can be booked."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistFull:
    """The waiting list is full."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotWaiting:
    """The user is not on the waiting list."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class CapacityBelowTaken:
    """The new capacity is below the number of bookings."""

    slot: Slot
    capacity: int


OtherBookingRefusal = LimitReached | TimeConflict
LimitRefusal = SlotStarted | NotYetOpen | Closed | NotEligible | GroupFull | OtherBookingRefusal
BookingRefusal = SlotNotFound | SlotFull | AlreadyBooked | SlotCancelled | LimitRefusal
OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned
