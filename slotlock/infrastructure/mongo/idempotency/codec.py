"""The stored form of the outcomes under idempotency keys.

A value of the domain is stored as `{_type: tag, field: value, ...}` and a member of an enum as
`{_type: tag, _value: value}`. The tags stand in one table, so that a class can be renamed or moved
while records of it are stored.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, StrEnum

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingLimit,
    BookingRef,
    BookingStatus,
    HistoryEntry,
    WaitlistEntry,
)
from slotlock.domain.booking.slot import Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_change import SlotChange
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaign_copies.outcomes import CampaignCopy, CopiedSlot
from slotlock.domain.campaigns.campaign import Campaign, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit, NoShowLimit, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.outcomes import SlotSaved
from slotlock.domain.slots.series import SeriesSummary, SkippedDate
from slotlock.domain.slots.series_dates import DatesRemoved, SeriesDatesSummary
from slotlock.domain.teams.outcomes import TeamSaved
from slotlock.domain.teams.team import Invitation, Member, Team
from slotlock.infrastructure.stored_enums import from_stored

TYPE_FIELD = "_type"
VALUE_FIELD = "_value"
REQUEST_LOST_TAG = "RequestLost"

TYPE_TAGS: Mapping[str, type] = {
    # Outcomes
    "Booked": outcomes.Booked,
    "AllBooked": outcomes.AllBooked,
    "SeriesBooked": outcomes.SeriesBooked,
    "BookingConfirmed": outcomes.BookingConfirmed,
    "HoldExtended": outcomes.HoldExtended,
    "BookingCancelled": outcomes.BookingCancelled,
    "BookingMoved": outcomes.BookingMoved,
    REQUEST_LOST_TAG: RequestLost,
    "SlotSaved": SlotSaved,
    "SeriesSummary": SeriesSummary,
    "SeriesDatesSummary": SeriesDatesSummary,
    "DatesRemoved": DatesRemoved,
    "CampaignSaved": CampaignSaved,
    "CampaignCopy": CampaignCopy,
    "TeamSaved": TeamSaved,
    # Refusals of the admission queue, and of slots of a series
    "SlotNotFound": refusals.SlotNotFound,
    "SlotFull": refusals.SlotFull,
    "SlotCancelled": refusals.SlotCancelled,
    "SlotStarted": refusals.SlotStarted,
    "AlreadyBooked": refusals.AlreadyBooked,
    "QueueOnly": refusals.QueueOnly,
    "NotYetOpen": refusals.NotYetOpen,
    "Closed": refusals.Closed,
    "NotEligible": refusals.NotEligible,
    "GroupFull": refusals.GroupFull,
    "HoldCooldown": refusals.HoldCooldown,
    "LimitReached": refusals.LimitReached,
    "TimeConflict": refusals.TimeConflict,
    "TooManyNoShows": refusals.TooManyNoShows,
    "NotTeammate": refusals.NotTeammate,
    "UserNotFound": refusals.UserNotFound,
    "UserBanned": refusals.UserBanned,
    # What they and the slots that they show are made of
    "Booking": Booking,
    "BookingAction": BookingAction,
    "BookingLimit": BookingLimit,
    "BookingRef": BookingRef,
    "BookingStatus": BookingStatus,
    "Campaign": Campaign,
    "CampaignTerms": CampaignTerms,
    "CopiedSlot": CopiedSlot,
    "GroupLimit": GroupLimit,
    "HistoryEntry": HistoryEntry,
    "Invitation": Invitation,
    "Meeting": Meeting,
    "Member": Member,
    "NoShowLimit": NoShowLimit,
    "SkippedDate": SkippedDate,
    "Slot": Slot,
    "SlotAdmission": SlotAdmission,
    "SlotCancellation": SlotCancellation,
    "SlotChange": SlotChange,
    "SlotKind": SlotKind,
    "SlotState": SlotState,
    "SlotStatus": SlotStatus,
    "Team": Team,
    "WaitlistEntry": WaitlistEntry,
}
# What a member of an enum that this version does not know counts as.
_UNKNOWN_MEMBERS: Mapping[type, StrEnum] = {
    BookingAction: BookingAction.OTHER,
    BookingLimit: BookingLimit.OTHER,
    BookingStatus: BookingStatus.CONFIRMED,
    SlotAdmission: SlotAdmission.QUEUE_ONLY,
    SlotKind: SlotKind.OTHER,
    SlotStatus: SlotStatus.DRAFT,
}
_STORED_UNCHANGED = frozenset({str, int, bool, datetime, type(None), dict})


# The admission queue stores many outcomes at once: their types are examined here, not per value.
_TAG_OF_TYPE = {stored_type: tag for tag, stored_type in TYPE_TAGS.items()}
_FIELDS_OF_TYPE: Mapping[type, tuple[str, ...]] = {
    # What does not count for equality is how the value was stored elsewhere.
    stored_type: tuple(field.name for field in fields(stored_type) if field.compare)
    for stored_type in TYPE_TAGS.values()
    if is_dataclass(stored_type)
}
# By type first: members of different enums are equal if their words are.
_ENUM_MEMBERS: Mapping[type, Mapping[object, object]] = {
    stored_type: {member: {TYPE_FIELD: tag, VALUE_FIELD: member.value} for member in stored_type}
    for tag, stored_type in TYPE_TAGS.items()
    if issubclass(stored_type, Enum)
}


class Encoder:
    """Encodes the values of one write.

    It encodes the same value once, since the outcomes of a batch show the same slot.
    """

    def __init__(self) -> None:
        # By identity, with the value itself, so that no other one can get its identity.
        self._encoded: dict[int, tuple[object, object]] = {}

    def encode(self, value: object) -> object:
        """Return a value of the domain as a document stores it. Nobody may change it.

        Raises:
            KeyError: the value contains a type without a tag.
        """
        value_type = type(value)
        if value_type in _STORED_UNCHANGED:
            return value
        if (names := _FIELDS_OF_TYPE.get(value_type)) is not None:
            known = self._encoded.get(id(value))
            if known is None:
                known = self._encoded[id(value)] = (value, self._encode_fields(value, names))
            return known[1]
        if (members := _ENUM_MEMBERS.get(value_type)) is not None:
            return members[value]
        if isinstance(value, tuple):
            return [self.encode(each) for each in value]
        if isinstance(value, Enum) or is_dataclass(value):
            raise KeyError(value_type)
        return value

    def _encode_fields(self, value: object, names: Iterable[str]) -> dict[str, object]:
        stored: dict[str, object] = {TYPE_FIELD: _TAG_OF_TYPE[type(value)]}
        for name in names:
            each = getattr(value, name)
            stored[name] = each if type(each) in _STORED_UNCHANGED else self.encode(each)
        return stored


def decode(stored: object) -> object:
    """Return the value of the domain that was stored.

    A field that this version does not have is ignored, and a field that is missing has its default.
    A member of an enum that this version does not have counts as another one.

    Raises:
        KeyError: a tag is unknown.
        TypeError: a field without a default is missing.
    """
    if isinstance(stored, list):
        return tuple(decode(each) for each in stored)
    if not isinstance(stored, dict) or TYPE_FIELD not in stored:
        return stored
    stored_type = TYPE_TAGS[stored[TYPE_FIELD]]
    if VALUE_FIELD in stored:
        return from_stored(stored[VALUE_FIELD], _UNKNOWN_MEMBERS[stored_type])
    names = _FIELDS_OF_TYPE[stored_type]
    return stored_type(**{name: decode(stored[name]) for name in names if name in stored})


def decode_slots(stored: list[object]) -> tuple[SlotState, ...]:
    """Return the slots that an outcome shows, as they were when it was stored.

    Raises:
        KeyError, TypeError: as `decode`; TypeError also for anything but a slot.
    """
    slots = tuple(decode(each) for each in stored)
    states = tuple(slot for slot in slots if isinstance(slot, SlotState))
    if len(states) < len(slots):
        raise TypeError("a stored slot is not a slot")
    return states
