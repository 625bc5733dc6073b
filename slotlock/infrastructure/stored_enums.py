"""Members of enums by their stored values, of which a newer version may know more.

An unknown action is shown as `OTHER`. An
unknown status of a live booking takes its place, and an unknown status of a slot hides it. A slot
with an unknown admission is for the admission queue only.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from slotlock.domain.audit.audit_log import AUDIT_ACTIONS, AuditAction
from slotlock.domain.booking.booking import BookingAction, BookingLimit, BookingStatus, MadeAs
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.resources.resource import ResourceKind
from slotlock.domain.users.user import Role

Member = TypeVar("Member", bound=StrEnum)

# What a value that this version does not know counts as, unless a conversion names another one.
UNKNOWN_MEMBERS: Mapping[type, StrEnum] = {
    BookingAction: BookingAction.OTHER,
    BookingLimit: BookingLimit.OTHER,
    BookingStatus: BookingStatus.CONFIRMED,
    MadeAs: MadeAs.GUARDIAN,  # whom the booker acts for is asked anew
    ResourceKind: ResourceKind.OTHER,
    Role: Role.MEMBER,
    SlotAdmission: SlotAdmission.QUEUE_ONLY,
    SlotKind: SlotKind.OTHER,
    SlotStatus: SlotStatus.DRAFT,
}
# A call of an enum takes three times as long.
_MEMBERS: Mapping[type, Mapping[object, Any]] = {
    enum: {member.value: member for member in type(unknown)}
    for enum, unknown in UNKNOWN_MEMBERS.items()
}

_AUDIT_ACTIONS: Mapping[object, AuditAction] = {each.value: each for each in AUDIT_ACTIONS}


class _KnownMembers(dict[object, Any]):
    """Members by their stored values; any other value is the one that it counts as."""

    unknown: Any

    def __missing__(self, _value: object) -> Any:
        return self.unknown


def reader_of(unknown: Member) -> Callable[[object], Member]:
    """Return a faster `from_stored` for one `unknown`: known values need no Python call."""
    members = _KnownMembers(_MEMBERS[type(unknown)])
    members.unknown = unknown
    return members.__getitem__


def from_stored(value: object, unknown: Member) -> Member:
    """Return the member that was stored, or the one that an unknown value counts as."""
    members: Mapping[object, Member] = _MEMBERS[type(unknown)]
    return members.get(value, unknown)


def audit_action_from_stored(value: object) -> AuditAction:
    """Return the action of an entry of the audit log."""
    return _AUDIT_ACTIONS.get(value, BookingAction.OTHER)


def limits_from_stored(values: Iterable[object]) -> tuple[BookingLimit, ...]:
    """Return the limits that were overridden with an entry of a history."""
    return tuple(from_stored(value, BookingLimit.OTHER) for value in values)
