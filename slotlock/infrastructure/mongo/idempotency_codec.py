"""Encode the outcomes that are stored under idempotency keys, and decode them.

A value of the domain is stored as `{_type: tag, field: value, ...}` and a member of an enum as
`{_type: tag, _value: value}`. The tags stand in one table, so that a class can be renamed or moved
while records of it are stored.

The admission queue stores refusals without their slots: `slot: {_type: tag, slot_id: id}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Self

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.booking.booking import (
    Booking,
    BookingRef,
    EndedWaitlistEntry,
    OtherBooking,
    SlotId,
    UserContext,
    WaitlistEntry,
)
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus, HistoryEntry
from slotlock.domain.booking.slot import Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_change import SlotChange
from slotlock.domain.booking.slot_outcome import SlotOutcome
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit
from slotlock.domain.schedule.meetings import Meeting

TYPE_FIELD = "_type"
VALUE_FIELD = "_value"
REQUEST_LOST_TAG = "RequestLost"
MISSING_SLOT_TAG = "CurrentSlotPlaceholder"

TYPE_TAGS: Mapping[str, type] = {
    # Outcomes
    "Booked": outcomes.Booked,
    "AllBooked": outcomes.AllBooked,
    "BookingConfirmed": outcomes.BookingConfirmed,
    "HoldExtended": outcomes.HoldExtended,
    "BookingCancelled": outcomes.BookingCancelled,
    "BookingMoved": outcomes.BookingMoved,
    REQUEST_LOST_TAG: RequestLost,
    # Refusals of the admission queue
    "SlotNotFound": refusals.SlotNotFound,
    "SlotFull": refusals.SlotFull,
    "SlotCancelled": refusals.SlotCancelled,
    "SlotStarted": refusals.SlotStarted,
    "AlreadyBooked": refusals.AlreadyBooked,
    "NotYetOpen": refusals.NotYetOpen,
    "Closed": refusals.Closed,
    "NotEligible": refusals.NotEligible,
    "GroupFull": refusals.GroupFull,
    "LimitReached": refusals.LimitReached,
    "TimeConflict": refusals.TimeConflict,
    "NotTeammate": refusals.NotTeammate,
    "UserNotFound": refusals.UserNotFound,
    "UserBanned": refusals.UserBanned,
    # What they are made of
    "Booking": Booking,
    "BookingAction": BookingAction,
    "BookingLimit": BookingLimit,
    "BookingRef": BookingRef,
    "BookingStatus": BookingStatus,
    "CampaignTerms": CampaignTerms,
    "EndedWaitlistEntry": EndedWaitlistEntry,
    "GroupLimit": GroupLimit,
    "HistoryEntry": HistoryEntry,
    "Meeting": Meeting,
    "OtherBooking": OtherBooking,
    "Slot": Slot,
    "SlotCancellation": SlotCancellation,
    "SlotChange": SlotChange,
    "SlotKind": SlotKind,
    "SlotStatus": SlotStatus,
    "UserContext": UserContext,
    "WaitlistEntry": WaitlistEntry,
}
_TAG_OF_TYPE = {stored_type: tag for tag, stored_type in TYPE_TAGS.items()}


@dataclass(frozen=True, slots=True)
class RefusalWithoutSlot:
    """A refusal as it is stored without its slot.

    Its readers see the slot as it is when they read it. `details` are the other stored fields.
    """

    slot_id: SlotId
    details: Mapping[str, object]

    @classmethod
    def from_refusal(cls, refusal: SlotOutcome) -> Self:
        """Return a refusal without its slot."""
        names = (field.name for field in fields(refusal) if field.name != "slot")
        details = {name: encode(getattr(refusal, name)) for name in names}
        return cls(refusal.slot.id, {TYPE_FIELD: _TAG_OF_TYPE[type(refusal)], **details})

    @property
    def refusal_type(self) -> type:
        """The class of the refusal."""
        return TYPE_TAGS[str(self.details[TYPE_FIELD])]

    def with_slot(self, slot: Slot) -> object:
        """Return the refusal with its slot."""
        return decode({**self.details, "slot": slot})


def encode(value: Any) -> Any:
    """Return a value of the domain as a document stores it.

    Raises:
        KeyError: the value contains a type without a tag.
    """
    if isinstance(value, RefusalWithoutSlot):
        missing = {TYPE_FIELD: MISSING_SLOT_TAG, "slot_id": value.slot_id}
        return {**value.details, "slot": missing}
    if isinstance(value, Enum):
        return {TYPE_FIELD: _TAG_OF_TYPE[type(value)], VALUE_FIELD: value.value}
    if is_dataclass(value):
        stored = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {TYPE_FIELD: _TAG_OF_TYPE[type(value)], **stored}
    return [encode(each) for each in value] if isinstance(value, tuple) else value


def decode(stored: Any) -> Any:
    """Return the value of the domain that was stored.

    A field that this version does not have is ignored, and a field that is missing has its default.

    Raises:
        KeyError: a tag is unknown.
        TypeError: a field without a default is missing.
        ValueError: an enum has no such value.
    """
    if isinstance(stored, list):
        return tuple(decode(each) for each in stored)
    if not isinstance(stored, dict) or TYPE_FIELD not in stored:
        return stored
    slot = stored.get("slot")
    if isinstance(slot, dict) and slot.get(TYPE_FIELD) == MISSING_SLOT_TAG:
        details = {name: each for name, each in stored.items() if name != "slot"}
        return RefusalWithoutSlot(slot["slot_id"], details)
    stored_type = TYPE_TAGS[stored[TYPE_FIELD]]
    if VALUE_FIELD in stored:
        return stored_type(stored[VALUE_FIELD])
    known = {field.name for field in fields(stored_type)}
    return stored_type(**{name: decode(each) for name, each in stored.items() if name in known})
