"""Why something about a place was refused."""

from datetime import datetime
from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql.ids import slot_gid, user_gid
from slotlock.graphql.types.limit_refusals import LimitRefusal, limit_refusal
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    Refusal,
    RefusalCode,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
)
from slotlock.graphql.types.slots import Booking, Slot, WaitlistEntry


@strawberry.type(description="The idempotency key came with other arguments before.")
class KeyReused(Refusal):
    idempotency_key: str = field(
        description="The key that was sent; empty as the outcome of a ticket, which knows its hash."
    )

    @classmethod
    def of(cls, outcome: refused.KeyReused) -> Self:
        return cls(
            code=RefusalCode.KEY_REUSED,
            message="This idempotency key was used for something else.",
            idempotency_key=outcome.key,
        )


@strawberry.type(description="A member books for themselves and for members of their teams only.")
class NotTeammate(Refusal):
    user_id: strawberry.ID = field(description="The person who was to be booked for.")

    @classmethod
    def of(cls, outcome: refused.NotTeammate) -> Self:
        return cls(
            code=RefusalCode.NOT_TEAMMATE,
            message="You can book for yourself and for members of your teams only.",
            user_id=user_gid(outcome.user_id),
        )


@strawberry.type(description="Nobody has this id.")
class PersonNotFound(Refusal):
    user_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def of(cls, user_id: str) -> Self:
        return cls(
            code=RefusalCode.PERSON_NOT_FOUND,
            message="There is no such person.",
            user_id=strawberry.ID(user_id),
        )


@strawberry.type(description="The person was banned, so that nobody books for them.")
class PersonBanned(Refusal):
    user_id: strawberry.ID = field(description="The person who was to be booked for.")

    @classmethod
    def of(cls, outcome: refused.PersonBanned) -> Self:
        return cls(
            code=RefusalCode.PERSON_BANNED,
            message="This person cannot be booked for.",
            user_id=user_gid(outcome.user_id),
        )


@strawberry.type(description="The hold ran out, and its place was given back.")
class HoldExpired(Refusal):
    booking: Booking = field(description="The hold as it ended.")
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def of(cls, outcome: refused.HoldExpired, caller: Caller) -> Self:
        slot = Slot.of(outcome.slot, caller)
        return cls(
            code=RefusalCode.HOLD_EXPIRED,
            message="This hold ran out, and its place was given back.",
            booking=Booking.of(outcome.booking, slot, caller),
            slot=slot,
        )


@strawberry.type(description="The hold cannot last longer than it does.")
class HoldLimitReached(Refusal):
    booking: Booking = field(description="The hold as it is.")

    @classmethod
    def of(cls, outcome: refused.HoldLimitReached, caller: Caller) -> Self:
        return cls(
            code=RefusalCode.HOLD_LIMIT_REACHED,
            message="This hold cannot last longer.",
            booking=Booking.of(outcome.booking, Slot.of(outcome.slot, caller), caller),
        )


@strawberry.type(description="It is a booking for good, which needs no more time.")
class NotHeld(Refusal):
    booking: Booking = field(description="The booking that is no hold.")

    @classmethod
    def of(cls, outcome: refused.NotHeld, caller: Caller) -> Self:
        return cls(
            code=RefusalCode.NOT_HELD,
            message="This is no hold, so it does not run out.",
            booking=Booking.of(outcome.booking, Slot.of(outcome.slot, caller), caller),
        )


@strawberry.type(description="It is too late to give this place back; organisers still can.")
class CutoffPassed(Refusal):
    cutoff: datetime = field(description="Until when it could be given back.")

    @classmethod
    def of(cls, outcome: refused.CutoffPassed) -> Self:
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
    def of(cls, outcome: refused.AlreadyWaiting, caller: Caller) -> Self:
        slot = Slot.of(outcome.slot, caller)
        return cls(
            code=RefusalCode.ALREADY_WAITING,
            message="You wait for a place in this slot already.",
            entry=WaitlistEntry.of(outcome.waiting, slot),
            slot=slot,
        )


@strawberry.type(description="There is a place to be booked, so nobody needs to wait.")
class PlacesLeft(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def of(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.PLACES_LEFT,
            message="There is a place left. Book it instead of waiting.",
            slot=slot,
        )


@strawberry.type(description="As many wait as may.")
class WaitlistFull(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def of(cls, slot: Slot) -> Self:
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
    def of(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.NOT_WAITING, message="You do not wait for this slot.", slot=slot
        )


PlaceRefusal = SlotNotFound | SlotFull | AlreadyBooked | SlotCancelled | LimitRefusal


def place_refusal(outcome: refused.PlaceRefusal, caller: Caller) -> PlaceRefusal:
    """Why somebody did not get a place, as they are told."""
    match outcome:
        case refused.SlotNotFound():
            return SlotNotFound.of(slot_gid(outcome.slot_id))
        case refused.SlotFull():
            return SlotFull.of(Slot.of(outcome.slot, caller))
        case refused.AlreadyBooked():
            slot = Slot.of(outcome.slot, caller)
            return AlreadyBooked.of(Booking.of(outcome.booking, slot, caller), slot)
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case _:
            return limit_refusal(outcome, caller)


PartyRefusal = NotTeammate | PersonNotFound | PersonBanned


def party_refusal(outcome: refused.PartyRefusal) -> PartyRefusal:
    """Why somebody could not be booked for, as the caller is told."""
    match outcome:
        case refused.NotTeammate():
            return NotTeammate.of(outcome)
        case refused.PersonNotFound():
            return PersonNotFound.of(user_gid(outcome.user_id))
        case refused.PersonBanned():
            return PersonBanned.of(outcome)
        case _:
            assert_never(outcome)
