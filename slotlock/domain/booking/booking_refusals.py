"""The reasons for which a command is refused, and what clients see of them."""

from datetime import datetime

from slotlock.domain.booking.booking import (
    Booking,
    BookingId,
    HistoryEntry,
    SlotId,
    WaitlistEntry,
)
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.declare import (
    CURRENT_SLOT,
    REQUESTED_SLOT,
    RETRY_AFTER_MS,
    SENT_ID,
    refusal,
    shown,
    shown_slot,
    to_reader,
)
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

SLOT_ID = "The id of the slot."
SLOT_OF_BOOKING = "The slot of the booking."


@value_object
class SlotOutcome:
    """An outcome or refusal about one slot, which its presentation shows."""

    slot_id: SlotId

    @property
    def shown_slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that a presentation of the outcome shows."""
        return (self.slot_id,)


@refusal(message="Someone else is booking this slot right now. Please try again.")
class Locked:
    """Another request is using the slot right now."""

    slot_id: SlotId = shown(SLOT_ID)
    retry_after_ms: int = shown(RETRY_AFTER_MS)


@refusal(message="Too many people want to book right now. Please try again.")
class QueueFull:
    """The booking queue of the slot is full."""

    slot_id: SlotId = shown(SLOT_ID)
    retry_after_ms: int = shown(RETRY_AFTER_MS)


@refusal(message="This idempotency key was already used for another request.")
class KeyReused:
    """The idempotency key was sent before with other arguments."""

    key: str = shown(
        "The key that was sent. Empty in the outcome of a ticket, which stores only the hash of "
        "the key.",
        name="idempotency_key",
    )


@refusal(message="This slot does not exist.")
class SlotNotFound:
    """The slot does not exist, or the caller may not see it.

    Nobody can book a draft, and only an organizer can book a slot of an unpublished campaign, for
    another user.
    """

    slot_id: SlotId = shown(SENT_ID)


# Places may be free that belong to users on the waiting list.
@refusal(message="Every place in this slot is taken.")
class SlotFull(SlotOutcome):
    """The slot has no free place."""

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(
    message=to_reader(
        own="You already have a booking in this slot.",
        other="This user already has a booking in this slot.",
        about="booking",
    )
)
class AlreadyBooked(SlotOutcome):
    """The user already has an active booking of the slot."""

    booking: Booking = shown("The existing booking.")
    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(
    message=to_reader(
        own="You have reached the maximum number of bookings: {limit}.",
        other="This user has reached the maximum number of bookings: {limit}.",
        neutral="The maximum number of bookings is reached: {limit}.",
        about="booking",
    )
)
class LimitReached(SlotOutcome):
    """The user has the maximum number of bookings: one for each choice group, or as many as the
    campaign allows.
    """

    limit: int
    # The user's booking in the choice group. It is None for a campaign, and if it belongs to
    # another claim of the same request.
    booking: Booking | None


@refusal(message="This slot has already started.")
class SlotStarted(SlotOutcome):
    """The slot has started, so its bookings can no longer change."""


@refusal(message="Booking of this slot opens at {opens_at}.")
class NotYetOpen(SlotOutcome):
    """The campaign has not opened yet."""

    opens_at: datetime = shown("When the campaign opens.")
    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(message="This slot can no longer be booked.")
class Closed(SlotOutcome):
    """The campaign is closed."""

    closes_at: datetime = shown("When the campaign closed.")
    slot_id: SlotId = shown(SLOT_ID)


@refusal(
    message=to_reader(
        own="This slot is for groups that you are not in.",
        other="This slot is for groups that this user is not in.",
        neutral="This slot is for other groups.",
    )
)
class NotEligible(SlotOutcome):
    """The campaign or the slot is for users of other groups."""

    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(
    message=to_reader(
        own="Please confirm your email address first.",
        other="This user has not confirmed their email address.",
        neutral="This slot is for users with a confirmed email address.",
    )
)
class EmailNotVerified(SlotOutcome):
    """The campaign or the site is for users with a verified e-mail address."""

    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(
    message=to_reader(
        own="All places for your group {group} are taken.",
        other="All places for this user's group {group} are taken.",
        neutral="All places for the group {group} are taken.",
    )
)
class GroupFull(SlotOutcome):
    """One of the user's groups has all of its places in the slot."""

    group: str = shown("The group that has all of its places.")
    limit: int = shown("How many places the group may have in the slot.")
    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(
    message=to_reader(
        own="Your reservation here ran out. Please book the place, or reserve it from {until} on.",
        other="A reservation of this user ran out here. They can reserve again from {until} on.",
        neutral="A reservation ran out here. Please book the place, or reserve it from {until} on.",
    )
)
class HoldCooldown(SlotOutcome):
    """The user had a hold in the slot that ended without a confirmation, so they cannot hold a
    place there again yet.

    They can book without a hold.
    """

    until: datetime = shown("From when the user can hold a place again.")
    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(
    message=to_reader(
        own="This slot overlaps another booking of yours.",
        other="This slot overlaps another booking of this user.",
        neutral="This slot overlaps another booking.",
        about="booking",
    )
)
class TimeConflict(SlotOutcome):
    """A meeting of the slot overlaps another booking of the user."""

    # It is None if it belongs to another claim of the same request.
    booking: Booking | None
    meeting: Meeting
    other_meeting: Meeting


@refusal(
    message=to_reader(
        own="After several missed bookings, you may book again from {until}.",
        other="After several missed bookings, this user may book again from {until}.",
        neutral="After several absences, booking is possible again from {until}.",
    )
)
class TooManyNoShows(SlotOutcome):
    """The user missed as many bookings of the campaign as it allows, and books nothing in it for
    some days.
    """

    count: int = shown("The number of no-shows of the user in the campaign.")
    until: datetime = shown("From when on the user may book again.")
    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(message="This slot was canceled.")
class SlotCancelled(SlotOutcome):
    """An organizer cancelled the slot."""

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="Places in this slot are given out through the queue only.")
class QueueOnly(SlotOutcome):
    """Members get places in the slot through the booking queue only: use `requestBooking`."""

    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(message="Places in this slot are drawn by lot from ranked wishes.")
class DrawOnly(SlotOutcome):
    """Until the result of the draw is published, only organizers book, and nobody waits."""

    slot_id: SlotId = shown_slot(REQUESTED_SLOT)


@refusal(
    message="You can book only for yourself, for those whose guardian you are, for members of your "
    "teams, and for those whom you may book in the slots that you lead."
)
class NotTeammate:
    """Members book for themselves, as guardians, for their teams, and as leaders for the groups of
    the campaign.
    """

    user_id: UserId = shown("The user to book for.")


@refusal(message="This user does not exist.")
class UserNotFound:
    """The user does not exist."""

    user_id: UserId = shown(SENT_ID)


@refusal(message="This user is banned. Nobody can book for them.")
class UserBanned:
    """The user is banned. Nobody can book, confirm, extend or move a place for them."""

    user_id: UserId = shown("The banned user.")


@refusal(message="This booking does not exist or has ended.")
class BookingNotFound:
    """The booking does not exist, has ended, or is neither for the caller, nor for somebody whose
    guardian they are, nor made by them.
    """

    slot_id: SlotId
    booking_id: BookingId = shown(SENT_ID)


@refusal(message="This reservation cannot be extended any further.")
class HoldLimitReached(SlotOutcome):
    """The hold cannot be extended any further."""

    booking: Booking = shown("The unchanged hold.")


@refusal(message="This booking is already confirmed and does not expire.")
class NotHeld(SlotOutcome):
    """The booking is confirmed and does not expire."""

    booking: Booking = shown("The confirmed booking.")


@refusal(message="This reservation ran out, and its place is free again.")
class HoldExpired(SlotOutcome):
    """The hold expired and its place became free."""

    booking: Booking = shown("The expired hold.")
    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="This booking is not confirmed, so nobody can be checked in for it.")
class NotConfirmed(SlotOutcome):
    """The booking is a hold, or it was cancelled, moved or has expired."""

    booking: Booking = shown("The booking as it is now.")
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)


@refusal(message="This user was checked in at {checked_in_at}.")
class AlreadyCheckedIn(SlotOutcome):
    """The user of the booking is checked in for the meeting."""

    booking: Booking
    meeting: Meeting
    check_in: HistoryEntry

    @property
    def checked_in_at(self) -> datetime:
        """When the user was checked in."""
        return self.check_in.at


# The caller checks in for one slot, and the booking is for another one: the one that is shown.
@refusal(message="This booking is for another slot.")
class WrongSlot(SlotOutcome):
    """The booking is for another slot than the one that the request names."""

    booking: Booking = shown("The booking, whose user the door can send to the right place.")
    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="This is not a valid check-in code.")
class InvalidCheckInCode:
    """The text is no check-in code of this server."""


@refusal(message="Check-in for this slot opens at {opens_at}.")
class CheckInNotOpen(SlotOutcome):
    """It is too early to check in for the slot, or for this meeting of it."""

    opens_at: datetime = shown("From when on the meeting takes check-ins.")
    slot_id: SlotId = shown_slot(SLOT_OF_BOOKING)


@refusal(message="This has not started, so nobody has missed it.")
class SlotNotStarted(SlotOutcome):
    """The slot or this meeting of it has not started, so nobody has missed it."""

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(
    message="You could cancel or move this booking until {cutoff}. Please contact an organizer."
)
class CutoffPassed(SlotOutcome):
    """Members can no longer cancel or move the booking. Organizers still can."""

    cutoff: datetime = shown("When the cut-off was.")


@refusal(
    message=to_reader(
        own="You are already on the waiting list of this slot.",
        other="This user is already on the waiting list of this slot.",
        about="entry",
    )
)
class AlreadyWaiting(SlotOutcome):
    """The user is already on the waiting list of the slot."""

    entry: WaitlistEntry = shown("The existing entry.")
    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="This slot has a free place. Please book it instead.")
class SlotNotFull(SlotOutcome):
    """The slot has a free place, so there is no need to wait."""


@refusal(message="{sentence}")
class WaitlistFull(SlotOutcome):
    """The waiting list is full, or the slot has none."""

    capacity: int
    slot_id: SlotId = shown_slot(CURRENT_SLOT)

    @property
    def sentence(self) -> str:
        """Why the user cannot wait."""
        return "The waiting list is full." if self.capacity else "This slot has no waiting list."


@refusal(
    message=to_reader(
        own="You are not on the waiting list of this slot.",
        other="This user is not on the waiting list of this slot.",
    )
)
class NotWaiting(SlotOutcome):
    """The user is not on the waiting list of the slot."""

    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="The capacity must be at least {taken}: that many places are taken.")
class CapacityBelowTaken(SlotOutcome):
    """The new capacity is lower than the number of taken places."""

    taken: int = shown("The number of taken places.")
    slot_id: SlotId = shown_slot(CURRENT_SLOT)


@refusal(message="This series does not exist.")
class SeriesNotFound:
    """The series does not exist, or the caller may see none of its slots."""

    series_id: SeriesId = shown(SENT_ID)


@refusal(message="This series has no slot that can be booked any more.")
class NothingToBook:
    """Every slot of the series has started, was cancelled or is a draft."""

    series_id: SeriesId = shown("The id of the series.")


@refusal(
    message="This series has {slot_count} slots to book. At most {limit} can be booked at once."
)
class SeriesTooLong:
    """The series has more slots to book than one request may book.

    `bookSlots` can book a part of them.
    """

    series_id: SeriesId
    slot_count: int = shown("How many slots of the series have not started.")
    limit: int = shown("How many slots one request may book.")


OtherBookingRefusal = LimitReached | TimeConflict
# A draw refuses no wish for these: it depends on no time, and rules users out before it decides.
UndrawnLimitRefusal = (
    SlotStarted | NotYetOpen | Closed | NotEligible | EmailNotVerified | TooManyNoShows
)
LimitRefusal = UndrawnLimitRefusal | GroupFull | OtherBookingRefusal
BookingRefusal = (
    SlotNotFound
    | SlotFull
    | AlreadyBooked
    | QueueOnly
    | DrawOnly
    | HoldCooldown
    | LimitRefusal
    | SlotCancelled
)
UndrawnRefusal = (
    SlotNotFound | QueueOnly | DrawOnly | HoldCooldown | UndrawnLimitRefusal | SlotCancelled
)
OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned
SeriesRefusal = SeriesNotFound | NothingToBook | SeriesTooLong
