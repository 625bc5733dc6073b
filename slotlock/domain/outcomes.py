"""What can come of asking the desk, each expected result named as a fact."""

from dataclasses import dataclass

from slotlock.domain.slots import Booking, BookingId, Slot, SlotId


@dataclass(frozen=True, slots=True)
class Booked:
    """The place is theirs."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class Locked:
    """Somebody else is being served at this slot; asking again after the pause is worth it."""

    slot_id: SlotId
    retry_after_ms: int


@dataclass(frozen=True, slots=True)
class SlotNotFound:
    """No such slot, or none that this person may see."""

    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class SlotFull:
    """Every place is taken."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class AlreadyBooked:
    """This person has a live booking in this slot already."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotStarted:
    """The slot has begun, so its bookings stay as they are."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotCancelled:
    """The organisers called the slot off."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class BookingNotFound:
    """No such booking, or none that this person may touch."""

    booking_id: BookingId


@dataclass(frozen=True, slots=True)
class BookingCancelled:
    """The place is free again. Cancelling twice gives the same answer."""

    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class SlotKept:
    """The slot stands as the organiser wanted it."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class CapacityBelowTaken:
    """Fewer places were asked for than are taken."""

    slot: Slot
    capacity: int


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field, in words for the person who filled it in."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class InvalidInput:
    """Something filled in cannot be taken; nothing was changed."""

    problems: tuple[FieldProblem, ...]


BookOutcome = (
    Booked | Locked | SlotNotFound | SlotFull | AlreadyBooked | SlotStarted | SlotCancelled
)
CancelOutcome = BookingCancelled | Locked | BookingNotFound | SlotStarted
KeepOutcome = SlotKept | InvalidInput | SlotNotFound | SlotCancelled | CapacityBelowTaken | Locked
