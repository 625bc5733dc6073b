"""What becomes of a booking: confirmed, extended, cancelled, moved."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import booked as desk
from slotlock.desk.booked import Errand
from slotlock.domain import outcomes
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.arguments import (
    KEY,
    PATIENT_MS,
    WAIT,
    Key,
    WaitMs,
    checked_key,
    checked_wait,
)
from slotlock.graphql.context import Info
from slotlock.graphql.types.booking_refusals import (
    CutoffPassed,
    HoldExpired,
    HoldLimitReached,
    KeyReused,
    LimitReached,
    NotHeld,
    place_refusal,
)
from slotlock.graphql.types.refusals import (
    AlreadyBooked,
    BookingNotFound,
    Locked,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    SlotStarted,
)
from slotlock.graphql.types.slots import Booking, Slot


@strawberry.type(description="A hold is a booking for good. Confirming twice gives the same.")
class BookingConfirmed:
    booking: Booking = field(description="The booking.")
    slot: Slot = field(description="The slot as it is now.")


@strawberry.type(description="The hold lasts longer.")
class HoldExtended:
    booking: Booking = field(description="The hold.")
    slot: Slot = field(description="The slot as it is now.")


@strawberry.type(description="The place is free again. Cancelling twice gives the same answer.")
class BookingCancelled:
    booking: Booking = field(description="The booking that was cancelled.")
    slot: Slot = field(description="The slot as it is now.")


@strawberry.type(description="The place in the other slot is theirs, the one they had is free.")
class BookingMoved:
    booking: Booking = field(description="The booking they have now.")
    old_booking: Booking = field(description="The booking they had.")
    slot: Slot = field(description="The slot they moved to, as it is now.")


ConfirmBookingResult = Annotated[
    BookingConfirmed
    | HoldExpired
    | BookingNotFound
    | SlotStarted
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("ConfirmBookingResult", description="What came of confirming."),
]
ExtendHoldResult = Annotated[
    HoldExtended | HoldLimitReached | NotHeld | HoldExpired | BookingNotFound | Locked | KeyReused,
    strawberry.union("ExtendHoldResult", description="What came of extending a hold."),
]
CancelBookingResult = Annotated[
    BookingCancelled
    | HoldExpired
    | BookingNotFound
    | SlotStarted
    | CutoffPassed
    | Locked
    | KeyReused,
    strawberry.union("CancelBookingResult", description="What came of cancelling."),
]
MoveBookingResult = Annotated[
    BookingMoved
    | HoldExpired
    | BookingNotFound
    | CutoffPassed
    | SlotNotFound
    | SlotFull
    | AlreadyBooked
    | LimitReached
    | SlotStarted
    | SlotCancelled
    | Locked
    | KeyReused,
    strawberry.union("MoveBookingResult", description="What came of moving."),
]

BookingIdArgument = Annotated[strawberry.ID, argument(description="The booking.")]


@strawberry.input(description="Which booking to move, and where.")
class MoveBookingInput:
    booking_id: strawberry.ID = field(description="The booking.")
    slot_id: strawberry.ID = field(description="The slot to move it to.")
    wait_ms: int = field(default=PATIENT_MS, description=WAIT)
    idempotency_key: str | None = field(default=None, description=KEY)


@strawberry.type
class BookedMutations:
    @field(description="Make a hold a booking for good, while it lasts.")
    async def confirm_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> ConfirmBookingResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return _confirmed(await desk.confirm(info.context.desk, errand), booking_id, caller)

    @field(
        description="Let a hold last as long as one that begins now, at most 60 minutes in all. "
        "An offer from the waiting list is not extended."
    )
    async def extend_hold(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> ExtendHoldResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return _extended(await desk.extend(info.context.desk, errand), booking_id, caller)

    @field(description="Give a place back: one's own until the cut-off, any for organisers.")
    async def cancel_booking(
        self,
        info: Info,
        booking_id: BookingIdArgument,
        wait_ms: WaitMs = PATIENT_MS,
        idempotency_key: Key = None,
    ) -> CancelBookingResult:
        caller = info.context.caller
        errand = _errand(booking_id, caller, wait_ms, idempotency_key)
        if errand is None:
            return BookingNotFound.of(booking_id)
        return _cancelled(await desk.cancel(info.context.desk, errand), booking_id, caller)

    @field(description="Exchange a place for one in another slot: never two, never none.")
    async def move_booking(
        self,
        info: Info,
        input: Annotated[MoveBookingInput, argument(description="What and where.")],  # noqa: A002
    ) -> MoveBookingResult:
        caller = info.context.caller
        errand = _errand(input.booking_id, caller, input.wait_ms, input.idempotency_key)
        slot_id = ids.slot_id_of(input.slot_id)
        if errand is None:
            return BookingNotFound.of(input.booking_id)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        outcome = await desk.move(info.context.desk, errand, slot_id)
        return _moved(outcome, input.booking_id, caller)


def _errand(booking_gid: str, caller: Caller, wait_ms: int, key: str | None) -> Errand | None:
    found = ids.booking_id_of(booking_gid)
    wait_s, key = checked_wait(wait_ms), checked_key(key)
    return Errand(*found, caller, wait_s, key) if found else None


def _confirmed(outcome: outcomes.ConfirmOutcome, gid: str, caller: Caller) -> ConfirmBookingResult:
    match outcome:
        case outcomes.BookingConfirmed():
            slot = Slot.of(outcome.slot, caller)
            return BookingConfirmed(booking=Booking.of(outcome.booking, slot), slot=slot)
        case outcomes.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case outcomes.BookingNotFound():
            return BookingNotFound.of(gid)
        case outcomes.SlotStarted():
            return SlotStarted.of(Slot.of(outcome.slot, caller))
        case outcomes.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, caller))
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def _extended(outcome: outcomes.ExtendOutcome, gid: str, caller: Caller) -> ExtendHoldResult:
    match outcome:
        case outcomes.HoldExtended():
            slot = Slot.of(outcome.slot, caller)
            return HoldExtended(booking=Booking.of(outcome.booking, slot), slot=slot)
        case outcomes.HoldLimitReached():
            return HoldLimitReached.of(outcome, caller)
        case outcomes.NotHeld():
            return NotHeld.of(outcome, caller)
        case outcomes.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case outcomes.BookingNotFound():
            return BookingNotFound.of(gid)
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def _cancelled(outcome: outcomes.CancelOutcome, gid: str, caller: Caller) -> CancelBookingResult:
    match outcome:
        case outcomes.BookingCancelled():
            slot = Slot.of(outcome.slot, caller)
            return BookingCancelled(booking=Booking.of(outcome.booking, slot), slot=slot)
        case outcomes.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case outcomes.BookingNotFound():
            return BookingNotFound.of(gid)
        case outcomes.SlotStarted():
            return SlotStarted.of(Slot.of(outcome.slot, caller))
        case outcomes.CutoffPassed():
            return CutoffPassed.of(outcome)
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.KeyReused():
            return KeyReused.of(outcome)
        case _:
            assert_never(outcome)


def _moved(outcome: outcomes.MoveOutcome, gid: str, caller: Caller) -> MoveBookingResult:
    match outcome:
        case outcomes.BookingMoved():
            slot = Slot.of(outcome.slot, caller)
            old = Booking.of(outcome.old_booking, Slot.of(outcome.old_slot, caller))
            return BookingMoved(
                booking=Booking.of(outcome.booking, slot), old_booking=old, slot=slot
            )
        case outcomes.HoldExpired():
            return HoldExpired.of(outcome, caller)
        case outcomes.BookingNotFound():
            return BookingNotFound.of(gid)
        case outcomes.CutoffPassed():
            return CutoffPassed.of(outcome)
        case outcomes.Locked():
            return Locked.of(outcome)
        case outcomes.KeyReused():
            return KeyReused.of(outcome)
        case _:
            return place_refusal(outcome, caller)
