"""The stored form of the outcomes under idempotency keys.

A value of the domain is stored as `{_type: tag, field: value, ...}` and a member of an enum as
`{_type: tag, _value: value}`. The tag is the name of the class. A class that is renamed while
records of it are stored needs its old name in `TYPE_TAGS`, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any, get_args, get_type_hints

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import (
    EndedWaitlistEntry,
)
from slotlock.domain.booking.booking_outcomes import BookingAlreadyDone, BookingWritten, BookOutcome
from slotlock.domain.booking.booking_refusals import KeyReused, Locked
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaign_copies.campaign_copy_outcomes import CampaignCopy
from slotlock.domain.campaigns.campaign import CampaignSaved
from slotlock.domain.shared.unchanged import Unchanged
from slotlock.domain.slots.series import SeriesSummary
from slotlock.domain.slots.series_dates import DatesRemoved, SeriesDatesSummary
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.infrastructure.stored_enums import UNKNOWN_MEMBERS, from_stored

TYPE_FIELD = "_type"
VALUE_FIELD = "_value"
REQUEST_LOST_TAG = "RequestLost"

# The outcomes that keys and tickets have, and the slots that these show.
STORED = (
    BookingWritten
    | BookingAlreadyDone
    | BookOutcome
    | RequestLost
    | SlotState
    | SlotSaved
    | SeriesSummary
    | SeriesDatesSummary
    | DatesRemoved
    | CampaignSaved
    | CampaignCopy
    | TeamSaved
)
# The changes of a recorded slot are empty, and so are its ended waitlist entries. A record has no
# description, and so no mark of one that is not loaded. To encode one of these is an error.
NEVER_STORED = frozenset({Locked, KeyReused, EndedWaitlistEntry, Unchanged})


def _types_within(annotation: object) -> Iterator[type]:
    """Yield the value objects and enums that values of this type can contain, each once."""
    found: set[object] = set(NEVER_STORED)
    waiting = [annotation]
    while waiting:
        each: Any = waiting.pop()
        waiting += get_args(each)
        is_enum = isinstance(each, type) and issubclass(each, Enum)
        if each not in found and (is_enum or is_dataclass(each)):
            found.add(each)
            waiting += () if is_enum else get_type_hints(each).values()
            yield each


TYPE_TAGS: Mapping[str, type] = {each.__name__: each for each in _types_within(STORED)}
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
        names = _FIELDS_OF_TYPE.get(value_type)
        if names is None:
            return self._encode_part(value)
        known = self._encoded.get(id(value))
        if known is None:
            stored: dict[str, object] = {TYPE_FIELD: _TAG_OF_TYPE[value_type]}
            for name in names:
                part = getattr(value, name)
                part_type = type(part)
                # Most parts are encoded without a call.
                if part_type in _STORED_UNCHANGED:
                    stored[name] = part
                elif (members := _ENUM_MEMBERS.get(part_type)) is not None:
                    stored[name] = members[part]
                elif part_type is tuple:
                    stored[name] = list(map(self.encode, part))
                else:
                    stored[name] = self.encode(part)
            known = self._encoded[id(value)] = (value, stored)
        return known[1]

    def _encode_part(self, value: object) -> object:
        if isinstance(value, tuple):
            return list(map(self.encode, value))
        if (members := _ENUM_MEMBERS.get(type(value))) is not None:
            return members[value]
        if isinstance(value, Enum) or is_dataclass(value):
            raise KeyError(type(value))
        return value


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
        return from_stored(stored[VALUE_FIELD], UNKNOWN_MEMBERS[stored_type])
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
