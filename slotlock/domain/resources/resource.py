"""A resource that slots occupy, and the rules for its name."""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from difflib import SequenceMatcher, get_close_matches
from typing import Annotated

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import is_blank, normalize_line, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.account_admin_rules import SelfRegistered
from slotlock.domain.users.user import User, UserId

# The id of a resource is made of its name.
ResourceName = Annotated[str, "resource"]

MAX_NAME_LENGTH = 100
MAX_IMPORTED_NAMES = 500
MAX_FREE_BUSY_RESOURCES = 50
MAX_FREE_BUSY_TIME = timedelta(days=92)
MAX_BUSY_SPANS = 1_000
# How long after the end of a slot its leader reads the roster and corrects the attendance.
LEADS_AFTER_END = timedelta(days=90)
# The words that two names do not have in common are more similar than this: not `Neu` and `Nolte`.
_NEAR = 0.5
# A title in Chinese follows the name without a blank.
_WORD = re.compile("老[师師]|(?:(?!老[师師])\\S)+")


class ResourceKind(DescribedEnum):
    """What a resource is."""

    ROOM = "room", "A room."
    STAFF = "staff", "A member of the staff, such as a teacher."
    EQUIPMENT = "equipment", "A device, such as a projector."
    OTHER = "other", "Something else."


@value_object
class Resource:
    """A resource. Its name is what slots store.

    `leader` is the account of a member of the staff. They lead the slots of the resource: they read
    the rosters, record the attendance, and write to those who have a place.
    """

    name: str
    kind: ResourceKind = ResourceKind.OTHER
    leader: UserId | None = None

    @property
    def leader_ref(self) -> str | None:
        """The leader as the audit log shows them: the id that clients know."""
        return f"user_{self.leader}" if self.leader else None


@value_object
class ResourceSaved:
    """The resource has the requested state."""

    resource: Resource


@refusal(message="This resource does not exist.")
class ResourceNotFound:
    """The resource does not exist."""


@refusal(message="Slots that are not over use this resource.")
class ResourceInUse:
    """Slots that are not over use the resource, so it cannot be deleted."""

    slot_ids: tuple[SlotId, ...] = shown("The ids of at most ten of these slots.")


@outcome
class ResourceDeleted:
    """The resource was deleted."""

    name: ResourceName = shown("The id of the deleted resource.", name="resource_id")


@outcome
class ResourcesImported:
    """Every name of the list is the name of a resource now."""

    created: tuple[Resource, ...] = shown(
        "The resources that were created, or that a dry run would create."
    )
    existing: tuple[Resource, ...] = shown("The resources that existed before.")


@value_object
class BusySpan:
    """A meeting of a slot that occupies a resource."""

    slot_id: SlotId
    meeting: Meeting


@value_object
class FreeBusy:
    """When a resource is occupied, in order; not complete if there are too many meetings."""

    name: str
    spans: tuple[BusySpan, ...]
    is_complete: bool


LeaderRefusal = UserNotFound | SelfRegistered | InvalidInput
CreateResourceOutcome = ResourceSaved | LeaderRefusal
UpdateResourceOutcome = ResourceSaved | ResourceNotFound | LeaderRefusal
ImportResourcesOutcome = ResourcesImported | InvalidInput
DeleteResourceOutcome = ResourceDeleted | ResourceInUse | ResourceNotFound


def name_key(name: str) -> str:
    """Return what the names of two resources may not have in common."""
    return normalize_line(name).casefold()


def validate_name(name: str) -> Problem | None:
    """Return the problem with a normalized name, or None."""
    if not name or is_blank(name):
        return ProblemCode.NAME_MISSING.problem()
    return validate_line(name, MAX_NAME_LENGTH)


def validate_kind(resource: Resource) -> Problem | None:
    """Return the problem of a leader of what is no member of the staff, or None."""
    is_led = resource.leader is not None and resource.kind is not ResourceKind.STAFF
    return ProblemCode.LEADER_NOT_STAFF.problem() if is_led else None


def leader_refusal(user_id: UserId, user: User | None) -> LeaderRefusal | None:
    """Return why a user cannot become a leader, who reads the names of others; None if they can."""
    if user is None or user.erased:
        return UserNotFound(user_id)
    if user.banned:
        return InvalidInput((FieldProblem("leaderId", ProblemCode.USER_IS_BANNED.problem()),))
    return SelfRegistered() if user.self_registered else None


def unknown_resource(field: str, name: str, known_names: Collection[str]) -> InvalidInput:
    """Return the problem of a name that no resource has, with the nearest name."""
    problem = ProblemCode.UNKNOWN_RESOURCE.problem(name=name)
    if nearest := _nearest(name, known_names):
        problem = ProblemCode.SIMILAR_RESOURCE.problem(name=name, similar=nearest)
    return InvalidInput((FieldProblem(field, problem),))


def _nearest(name: str, known_names: Collection[str]) -> str | None:
    """Return the known name whose other words are nearest; None if none is near.

    `Herr Neu` is not near to `Herr Quast`, with which it has the title in common.
    """
    by_key = {name_key(known): known for known in known_names}
    key = name_key(name)
    close = get_close_matches(key, by_key, n=len(by_key) or 1)
    nearest = max(close, key=lambda known: _likeness(key, known), default=None)
    return by_key[nearest] if nearest and _likeness(key, nearest) > _NEAR else None


def _likeness(name: str, known: str) -> float:
    """Return how similar the words are that only one of two names has, from 0 to 1."""
    words, others = map(_WORD.findall, (name, known))
    only, others = [w for w in words if w not in others], [w for w in others if w not in words]
    return SequenceMatcher(None, " ".join(only), " ".join(others)).ratio() if only and others else 1


def free_busy(
    name: str, meetings: Iterable[tuple[SlotId, Sequence[Meeting]]], start: datetime, end: datetime
) -> FreeBusy:
    """Return the meetings of slots that overlap a period, as the spans of a resource."""
    spans = [
        BusySpan(slot_id, meeting)
        for slot_id, of_slot in meetings
        for meeting in of_slot
        if meeting.start < end and meeting.end > start
    ]
    spans.sort(key=lambda span: (span.meeting.start, span.slot_id))
    return FreeBusy(name, tuple(spans[:MAX_BUSY_SPANS]), len(spans) <= MAX_BUSY_SPANS)
