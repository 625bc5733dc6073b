"""The reasons for which a command is refused."""

from datetime import datetime

from slotlock.domain.booking.booking import Booking, BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId


@value_object
class SlotOutcome:
    """An outcome or refusal about one slot, which its presentation shows."""

    slot_id: SlotId

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return (self.slot_id,)


@value_object
class Locked:
    """Other commands are changing the slot; the client can retry after the pause."""

    slot_id: SlotId
    retry_after_ms: int


@value_object
class QueueFull:
    """The admission queue of the slot is full; the client can retry after the pause."""

    slot_id: SlotId
    retry_after_ms: int


@value_object
class KeyReused:
    """The idempotency key was used for another request."""

    key: str


@value_object
class SlotNotFound:
    """The slot does not exist, or the caller may not see it."""

    slot_id: SlotId


@value_object
class SlotFull(SlotOutcome):
    """Every place is booked, or belongs to users on the waiting list."""


@value_object
class AlreadyBooked(SlotOutcome):
    """The user has a live booking in this slot."""

    booking: Booking


@value_object
class LimitReached(SlotOutcome):
    """The user has as many bookings as a choice group or a campaign allows.

    `booking` is the user's booking in the choice group. It is None for a campaign, and if it
    belongs to another claim of the same request.
    """

    limit: int
    booking: Booking | None


@value_object
class SlotStarted(SlotOutcome):
    """The slot has started."""


@value_object
class NotYetOpen(SlotOutcome):
    """The campaign accepts bookings from `opens_at`."""

    opens_at: datetime


@value_object
class Closed(SlotOutcome):
    """The campaign takes no bookings from `closes_at` on."""

    closes_at: datetime


@value_object
class NotEligible(SlotOutcome):
    """The user is in none of the groups that the campaign is for."""


@value_object
class GroupFull(SlotOutcome):
    """The slot has as many bookings of this group as its limit allows."""

    group: str
    limit: int


@value_object
class HoldCooldown(SlotOutcome):
    """The user had a hold in this slot that ended unconfirmed; they may hold it again at `until`.

    A booking without a hold is not affected.
    """

    until: datetime


@value_object
class TimeConflict(SlotOutcome):
    """A meeting of the slot overlaps a meeting of another slot that the user has booked.

    `booking` is None if it belongs to another claim of the same request.
    """

    booking: Booking | None
    meeting: Meeting
    other_meeting: Meeting


@value_object
class TooManyNoShows(SlotOutcome):
    """The user missed as many bookings of the campaign as it allows, and books none before `until`.

    `count` is the number of no-shows of the user.
    """

    count: int
    until: datetime


@value_object
class SlotCancelled(SlotOutcome):
    """The slot was cancelled."""


@value_object
class QueueOnly(SlotOutcome):
    """Members get places in the slot through the admission queue only."""


@value_object
class NotTeammate:
    """The user is not in a team with the caller."""

    user_id: UserId


@value_object
class UserNotFound:
    """There is no user with this id."""

    user_id: UserId


@value_object
class UserBanned:
    """The user is banned."""

    user_id: UserId


@value_object
class BookingNotFound:
    """The slot has no such booking, or the caller may not change it."""

    slot_id: SlotId
    booking_id: BookingId


@value_object
class HoldLimitReached(SlotOutcome):
    """The hold cannot be extended."""

    booking: Booking


@value_object
class NotHeld(SlotOutcome):
    """The booking is confirmed, so there is nothing to extend."""

    booking: Booking


@value_object
class HoldExpired(SlotOutcome):
    """The hold has expired."""

    booking: Booking


@value_object
class NotConfirmed(SlotOutcome):
    """The booking is a hold or has ended, so no attendance can be recorded."""

    booking: Booking


@value_object
class AlreadyCheckedIn(SlotOutcome):
    """The user of the booking is checked in."""

    booking: Booking


@value_object
class WrongSlot(SlotOutcome):
    """The booking is for this slot, and the caller checks in for another one."""


@value_object
class CheckInNotOpen(SlotOutcome):
    """The slot takes check-ins from `opens_at`."""

    opens_at: datetime


@value_object
class SlotNotStarted(SlotOutcome):
    """The slot has not started, so nobody has missed it."""


@value_object
class CutoffPassed(SlotOutcome):
    """The cutoff has passed: only organizers can cancel the booking."""

    cutoff: datetime


@value_object
class AlreadyWaiting(SlotOutcome):
    """The user is on the waiting list."""

    entry: WaitlistEntry


@value_object
class SlotNotFull(SlotOutcome):
    """The slot has a free place that can be booked."""


@value_object
class WaitlistFull(SlotOutcome):
    """The waiting list is full."""


@value_object
class NotWaiting(SlotOutcome):
    """The user is not on the waiting list."""


@value_object
class CapacityBelowTaken(SlotOutcome):
    """The new capacity is below the number of bookings."""

    capacity: int


@value_object
class SeriesNotFound:
    """The series does not exist, or the caller may see none of its slots."""

    series_id: SeriesId


@value_object
class NothingToBook:
    """Every slot of the series has started, was cancelled or is a draft."""

    series_id: SeriesId


@value_object
class SeriesTooLong:
    """The series has more slots to book than one request may book."""

    series_id: SeriesId
    slot_count: int
    limit: int


OtherBookingRefusal = LimitReached | TimeConflict
LimitRefusal = (
    SlotStarted
    | NotYetOpen
    | Closed
    | NotEligible
    | TooManyNoShows
    | GroupFull
    | OtherBookingRefusal
)
BookingRefusal = (
    SlotNotFound
    | SlotFull
    | AlreadyBooked
    | QueueOnly
    | SlotCancelled
    | HoldCooldown
    | LimitRefusal
)
OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned
SeriesRefusal = SeriesNotFound | NothingToBook | SeriesTooLong
