"""What a caller can act on, as data: every refusal has a code and a message of its own."""

from datetime import datetime
from enum import Enum
from typing import Self

import strawberry
from strawberry import enum_value, field

from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.graphql.core.ids import slot_global_id
from slotlock.graphql.slots.types import Booking, Slot


@strawberry.enum(description="Why something was refused; more are added as the schema grows.")
class RefusalCode(Enum):
    LOCKED = enum_value("LOCKED", description="Somebody else is being served; ask again.")
    QUEUE_FULL = enum_value("QUEUE_FULL", description="Too many are in line; ask again.")
    SLOT_NOT_FOUND = enum_value("SLOT_NOT_FOUND", description="No such slot.")
    SLOT_FULL = enum_value("SLOT_FULL", description="Every place is taken.")
    ALREADY_BOOKED = enum_value("ALREADY_BOOKED", description="They have a place already.")
    SLOT_STARTED = enum_value("SLOT_STARTED", description="The slot has begun.")
    SLOT_CANCELLED = enum_value("SLOT_CANCELLED", description="The slot was called off.")
    BOOKING_NOT_FOUND = enum_value("BOOKING_NOT_FOUND", description="No such booking.")
    CAPACITY_BELOW_TAKEN = enum_value(
        "CAPACITY_BELOW_TAKEN", description="More places are taken than would be left."
    )
    INVALID_INPUT = enum_value("INVALID_INPUT", description="A field cannot be taken as it is.")
    EMAIL_TAKEN = enum_value("EMAIL_TAKEN", description="The address has an account.")
    INVALID_CREDENTIALS = enum_value(
        "INVALID_CREDENTIALS", description="The address or the password is wrong."
    )
    TOO_MANY_ATTEMPTS = enum_value("TOO_MANY_ATTEMPTS", description="Try again later.")
    INVALID_SESSION = enum_value("INVALID_SESSION", description="Sign in again.")
    SESSION_NOT_FOUND = enum_value("SESSION_NOT_FOUND", description="No such session of theirs.")
    TEAM_NOT_FOUND = enum_value("TEAM_NOT_FOUND", description="No such team.")
    TEAM_FULL = enum_value("TEAM_FULL", description="Nobody more can be invited.")
    ALREADY_MEMBER = enum_value("ALREADY_MEMBER", description="They are in the team.")
    NOT_INVITED = enum_value("NOT_INVITED", description="There is no such invitation.")
    TOO_MANY_TEAMS = enum_value("TOO_MANY_TEAMS", description="Leave another team first.")
    TOO_MANY_INVITATIONS = enum_value(
        "TOO_MANY_INVITATIONS", description="The address has too many open invitations."
    )
    TEAM_BUSY = enum_value("TEAM_BUSY", description="Others are changing it; ask again.")
    KEY_REUSED = enum_value("KEY_REUSED", description="The key came with other arguments before.")
    LIMIT_REACHED = enum_value("LIMIT_REACHED", description="They have as many as they may.")
    CAMPAIGN_NOT_FOUND = enum_value("CAMPAIGN_NOT_FOUND", description="No such campaign.")
    CAMPAIGN_BUSY = enum_value("CAMPAIGN_BUSY", description="Others are changing it; ask again.")
    RESOURCE_TAKEN = enum_value("RESOURCE_TAKEN", description="Another slot needs it then.")
    SERIES_CONFLICTS = enum_value("SERIES_CONFLICTS", description="Some dates are taken.")
    NOT_YET_OPEN = enum_value("NOT_YET_OPEN", description="The campaign opens later.")
    CLOSED = enum_value("CLOSED", description="The campaign takes no bookings any more.")
    NOT_ELIGIBLE = enum_value("NOT_ELIGIBLE", description="It is for people of other groups.")
    GROUP_FULL = enum_value("GROUP_FULL", description="As many of a group have places as may.")
    TIME_CONFLICT = enum_value("TIME_CONFLICT", description="It overlaps another booking.")
    NOT_TEAMMATE = enum_value("NOT_TEAMMATE", description="They are in no team of the caller's.")
    USER_NOT_FOUND = enum_value("USER_NOT_FOUND", description="No such person.")
    USER_BANNED = enum_value("USER_BANNED", description="They were banned.")
    CLAIMS_REFUSED = enum_value("CLAIMS_REFUSED", description="One refused claim refuses all.")
    HOLD_EXPIRED = enum_value("HOLD_EXPIRED", description="The hold ran out.")
    HOLD_LIMIT_REACHED = enum_value("HOLD_LIMIT_REACHED", description="It can last no longer.")
    NOT_HELD = enum_value("NOT_HELD", description="It is no hold.")
    CUTOFF_PASSED = enum_value("CUTOFF_PASSED", description="Too late to give a place back.")
    ALREADY_WAITING = enum_value("ALREADY_WAITING", description="They wait already.")
    SLOT_NOT_FULL = enum_value("SLOT_NOT_FULL", description="Nobody needs to wait.")
    WAITLIST_FULL = enum_value("WAITLIST_FULL", description="As many wait as may.")
    NOT_WAITING = enum_value("NOT_WAITING", description="They do not wait.")
    BANNED = enum_value("BANNED", description="They were banned.")
    INVALID_INVITATION = enum_value("INVALID_INVITATION", description="The token is no good.")
    CANNOT_BAN_SELF = enum_value("CANNOT_BAN_SELF", description="Somebody else has to do this.")
    ADMIN_REQUIRED = enum_value("ADMIN_REQUIRED", description="An admin has to do this.")


@strawberry.interface(description="An expected answer that is not what was asked for.")
class Refusal:
    code: RefusalCode = field(description="To act on.")
    message: str = field(description="To show to a person.")


@strawberry.type(description="Somebody else is being served at this slot right now.")
class Locked(Refusal):
    slot_id: strawberry.ID = field(description="The slot.")
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: refusals.Locked) -> Self:
        return cls(
            code=RefusalCode.LOCKED,
            message="Somebody else is booking this slot right now. Please try again.",
            slot_id=slot_global_id(outcome.slot_id),
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(
    description="No such slot, or none that the caller may see; a draft cannot be booked by anyone."
)
class SlotNotFound(Refusal):
    slot_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.SLOT_NOT_FOUND,
            message="There is no such slot.",
            slot_id=strawberry.ID(global_id),
        )


@strawberry.type(description="Every place is taken.")
class SlotFull(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(code=RefusalCode.SLOT_FULL, message="Every place is taken.", slot=slot)


@strawberry.type(description="The person has a live booking in this slot already.")
class AlreadyBooked(Refusal):
    booking: Booking = field(description="The booking they have.")
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, booking: Booking, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.ALREADY_BOOKED,
            message="They have a place in this slot already.",
            booking=booking,
            slot=slot,
        )


@strawberry.type(description="The slot has begun, so its bookings stay as they are.")
class SlotStarted(Refusal):
    start_time: datetime = field(description="When it began.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(
            code=RefusalCode.SLOT_STARTED,
            message="This slot has begun.",
            start_time=slot.start_time,
        )


@strawberry.type(description="The organisers called the slot off.")
class SlotCancelled(Refusal):
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        return cls(code=RefusalCode.SLOT_CANCELLED, message="This slot was called off.", slot=slot)


@strawberry.type(description="No such booking, or none that the caller may touch.")
class BookingNotFound(Refusal):
    booking_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.BOOKING_NOT_FOUND,
            message="There is no such booking.",
            booking_id=strawberry.ID(global_id),
        )


@strawberry.type(description="Fewer places were asked for than are taken.")
class CapacityBelowTaken(Refusal):
    taken: int = field(description="Places taken.")
    slot: Slot = field(description="The slot as it is now.")

    @classmethod
    def from_domain(cls, slot: Slot) -> Self:
        taken = slot.capacity - slot.remaining
        return cls(
            code=RefusalCode.CAPACITY_BELOW_TAKEN,
            message=f"{taken} places are taken, so there must be at least as many.",
            taken=taken,
            slot=slot,
        )


@strawberry.type(description="What is wrong with one field of an input.")
class FieldProblem:
    field: str = strawberry.field(description="The field's name.")
    message: str = strawberry.field(description="What is wrong with it.")


@strawberry.type(description="Something filled in cannot be taken; nothing was changed.")
class InvalidInput(Refusal):
    fields: list[FieldProblem] = field(description="Every field that is wrong.")

    @classmethod
    def from_domain(cls, outcome: validation.InvalidInput) -> Self:
        problems = [FieldProblem(field=p.field, message=p.message) for p in outcome.problems]
        return cls(
            code=RefusalCode.INVALID_INPUT,
            message=" ".join(f"{problem.field}: {problem.message}" for problem in problems),
            fields=problems,
        )
