"""Why something about a place was refused."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.limit_refusals import LimitRefusal, to_limit_refusal
from slotlock.graphql.core.ids import slot_global_id, user_global_id
from slotlock.graphql.core.refusals import (
    AlreadyBooked,
    Refusal,
    RefusalCode,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
)
from slotlock.graphql.slots.types import Booking, Slot, WaitlistEntry


@strawberry.type(description="The idempotency key came with other arguments before.")
class KeyReused(Refusal):
    idempotency_key: str = field(
        description="The key that was sent; empty as the outcome of a ticket, which knows its hash."
    )

    @classmethod
    def from_domain(cls, outcome: refusals.KeyReused) -> Self:
        return cls(
            code=RefusalCode.KEY_REUSED,
            message="This idempotency key was used for something else.",
            idempotency_key=outcome.key,
        )


@strawberry.type(description="A member books for themselves and for members of their teams only.")
class NotTeammate(Refusal):
    user_id: strawberry.ID = field(description="The person who was to be booked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotTeammate) -> Self:
        return cls(
            code=RefusalCode.NOT_TEAMMATE,
            message="You can book for yourself and for members of your teams only.",
            user_id=user_global_id(outcome.user_id),
        )


@strawberry.type(description="Nobody has this id.")
class UserNotFound(Refusal):
    user_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.USER_NOT_FOUND,
            message="There is no such person.",
            user_id=strawberry.ID(global_id),
        )


@strawberry.type(description="The person was banned, so that nobody books for them.")
class UserBanned(Refusal):
    user_id: strawberry.ID = field(description="The person who was to be booked for.")

    @classmethod
    def from_domain(cls, outcome: refusals.UserBanned) -> Self:
        return cls(
            code=RefusalCode.USER_BANNED,
            message="This person cannot be booked for.",
            user_id=user_global_id(outcome.user_id),
        )


@strawberry.type(description="The hold ran out, and its place was given back.")
class HoldExpired(Refusal):
    booking: Booking = field(description="The hold as it ended.")
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, outcome: refusals.HoldExpired, viewer: Caller) -> Self:
        slot = Slot.from_domain(outcome.slot, viewer)
        return cls(
            code=RefusalCode.HOLD_EXPIRED,
            message="This hold ran out, and its place was given back.",
            booking=Booking.from_domain(outcome.booking, slot, viewer),
            slot=slot,
        )


@strawberry.type(description="The hold cannot last longer than it does.")
class HoldLimitReached(Refusal):
    booking: Booking = field(description="The hold as it is.")

    @classmethod
    def from_domain(cls, outcome: refusals.HoldLimitReached, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.HOLD_LIMIT_REACHED,
            message="This hold cannot last longer.",
            booking=Booking.from_domain(
                outcome.booking, Slot.from_domain(outcome.slot, viewer), viewer
            ),
        )


@strawberry.type(description="It is a booking for good, which needs no more time.")
class NotHeld(Refusal):
    booking: Booking = field(description="The booking that is no hold.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotHeld, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.NOT_HELD,
            message="This is no hold, so it does not run out.",
            booking=Booking.from_domain(
                outcome.booking, Slot.from_domain(outcome.slot, viewer), viewer
            ),
        )


@strawberry.type(description="It is too late to give this place back; organisers still can.")
class CutoffPassed(Refusal):
    cutoff: datetime = field(description="Until when it could be given back.")

    @classmethod
    def from_domain(cls, outcome: refusals.CutoffPassed) -> Self:
        return cls(
            code=RefusalCode.CUTOFF_PASSED,
            message="It is too late to give this place back yourself. Please ask an organiser.",
            cutoff=outcome.cutoff,
        )


@strawberry.type(description="The person waits for a place already.")
class AlreadyWaiting(Refusal):
    entry: WaitlistEntry = field(description="Their turn in line.")
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, outcome: refusals.AlreadyWaiting, viewer: Caller) -> Self:
        slot = Slot.from_domain(outcome.slot, viewer)
        return cls(
            code=RefusalCode.ALREADY_WAITING,
            message="You wait for a place in this slot already.",
            entry=WaitlistEntry.from_domain(outcome.entry, slot),
            slot=slot,
        )


@strawberry.type(description="There is a place to be booked, so nobody needs to wait.")
class SlotNotFull(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.SLOT_NOT_FULL,
            message="There is a place left. Book it instead of waiting.",
            slot=slot,
        )


@strawberry.type(description="As many wait as may.")
class WaitlistFull(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.WAITLIST_FULL,
            message="The waiting list is full."
            if slot.waitlist_capacity
            else "There is no waiting list.",
            slot=slot,
        )


@strawberry.type(description="The person does not wait for this slot.")
class NotWaiting(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.NOT_WAITING, message="You do not wait for this slot.", slot=slot
        )


BookingRefusal = SlotNotFound | SlotFull | AlreadyBooked | SlotCancelled | LimitRefusal


def to_booking_refusal(outcome: refusals.BookingRefusal, viewer: Caller) -> BookingRefusal:
    """Why somebody did not get a place, as they are told."""
    match outcome:
        case refusals.SlotNotFound():
            return SlotNotFound.for_id(slot_global_id(outcome.slot_id))
        case refusals.SlotFull():
            return SlotFull.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.AlreadyBooked():
            slot = Slot.from_domain(outcome.slot, viewer)
            return AlreadyBooked.from_domain(
                Booking.from_domain(outcome.booking, slot, viewer), slot
            )
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(Slot.from_domain(outcome.slot, viewer))
        case _:
            return to_limit_refusal(outcome, viewer)


OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned


def to_on_behalf_refusal(outcome: refusals.OnBehalfRefusal) -> OnBehalfRefusal:
    """Why somebody could not be booked for, as the caller is told."""
    match outcome:
        case refusals.NotTeammate():
            return NotTeammate.from_domain(outcome)
        case refusals.UserNotFound():
            return UserNotFound.for_id(user_global_id(outcome.user_id))
        case refusals.UserBanned():
            return UserBanned.from_domain(outcome)
        case _:
            assert_never(outcome)
