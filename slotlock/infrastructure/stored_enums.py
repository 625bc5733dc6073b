"""Members of enums by their stored values, of which a newer version may know more.

Each conversion names what an unknown value counts as. An unknown action is shown as `OTHER`. An
unknown status of a live booking takes its place, and an unknown status of a slot hides it. A slot
with an unknown admission is for the admission queue only.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.booking.booking import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.resources.resource import ResourceKind
from slotlock.domain.users.user import Role

Member = TypeVar("Member", bound=StrEnum)

_ENUMS: tuple[type[StrEnum], ...] = (
    *(AuditAction, BookingAction, BookingLimit, BookingStatus),
    *(ResourceKind, Role, SlotAdmission, SlotKind, SlotStatus),
)
# A call of an enum takes three times as long.
_MEMBERS: Mapping[type, Mapping[object, Any]] = {
    enum: {member.value: member for member in enum} for enum in _ENUMS
}


def from_stored(value: object, unknown: Member) -> Member:
    """Return the member that was stored, or the one that an unknown value counts as."""
    members: Mapping[object, Member] = _MEMBERS[type(unknown)]
    return members.get(value, unknown)


def limits_from_stored(values: Iterable[object]) -> tuple[BookingLimit, ...]:
    """Return the limits that were overridden with an entry of a history."""
    return tuple(from_stored(value, BookingLimit.OTHER) for value in values)
