"""Why somebody did not get what they asked for, each reason named as a fact."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.slot import Slot
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId


@dataclass(frozen=True, slots=True)
class Locked:
    """Somebody else is being served at this slot; asking again after the pause is worth it."""

    slot_id: SlotId
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class QueueFull:
    """As many stand in line as may; asking again after the pause is worth it."""

    slot_id: SlotId
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class KeyReused:
    """The idempotency key came with other arguments before."""

    key: str


@dataclass(frozen=True, slots=True)
class SlotNotFound:
    """No such slot, or none that this person may see."""

    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class SlotFull:
    """Every place is taken, or promised to those who wait."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class AlreadyBooked:
    """This person has a live booking in this slot already."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class LimitReached:
    """This person has as many bookings as they may have: one of each choice, some of a campaign.

    `booking` is the one they have of the choice; None in a campaign, and when another claim of
    the same request wants it.
    """

    limit: int
    booking: Booking | None
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotStarted:
    """The slot has begun, so its bookings stay as they are."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotYetOpen:
    """The campaign takes bookings from `opens_at` on."""

    opens_at: datetime
    slot: Slot


@dataclass(frozen=True, slots=True)
class Closed:
    """The campaign takes no bookings any more, or was not published when it was decided."""

    closes_at: datetime
    slot: Slot
    published: bool = True


@dataclass(frozen=True, slots=True)
class NotEligible:
    """The campaign is for people of other groups."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class GroupFull:
    """As many people of this group have a place in the slot as may."""

    group: str
    limit: int
    slot: Slot


@dataclass(frozen=True, slots=True)
class TimeConflict:
    """A meeting of the slot overlaps one of a slot in which this person has a booking.

    `booking` is None when another claim of the same request wants that one.
    """

    booking: Booking | None
    meeting: Meeting
    other_meeting: Meeting
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotCancelled:
    """The organisers called the slot off."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotTeammate:
    """A member books for themselves and for members of their teams."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class UserNotFound:
    """Nobody has this id."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class UserBanned:
    """This person was banned, so nobody books for them."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class BookingNotFound:
    """The slot has no such booking, or the caller may not change it."""

    slot_id: SlotId
    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class HoldLimitReached:
    """The hold cannot last longer than it does."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class NotHeld:
    """It is a booking for good, which needs no more time."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """The hold ran out, and its place was given back."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class CutoffPassed:
    """It is too late for members to give this place back; organisers still can."""

    cutoff: datetime
    slot: Slot


@dataclass(frozen=True, slots=True)
class AlreadyWaiting:
    """They wait for a place already."""

    entry: WaitlistEntry
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotNotFull:
    """There is a place to be booked, so nobody needs to wait."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class WaitlistFull:
    """As many wait as may."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class NotWaiting:
    """They do not wait for this slot."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class CapacityBelowTaken:
    """Fewer places were asked for than are taken."""

    slot: Slot
    capacity: int


OtherBookingRefusal = LimitReached | TimeConflict
LimitRefusal = SlotStarted | NotYetOpen | Closed | NotEligible | GroupFull | OtherBookingRefusal
BookingRefusal = SlotNotFound | SlotFull | AlreadyBooked | SlotCancelled | LimitRefusal
OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned
