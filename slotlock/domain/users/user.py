"""The people of the system: who they are and what their role lets them do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

from slotlock.domain.shared.text import is_blank, validate_line

UserId = NewType("UserId", str)

MAX_USER_NAME_LENGTH = 100


class Role(StrEnum):
    """What a person may do: members book, organizers also keep slots, admins keep everything."""

    MEMBER = "member"
    ORGANIZER = "organizer"
    ADMIN = "admin"

    @property
    def is_organizer(self) -> bool:
        """Whether whoever has it may create, change and look behind slots."""
        return self in (Role.ORGANIZER, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class User:
    """A person with an account. One who was imported has no password until they set it."""

    id: UserId
    name: str
    email: str
    role: Role
    created_at: datetime
    groups: tuple[str, ...] = ()
    banned_at: datetime | None = None
    ban_reason: str | None = None
    has_password: bool = True

    @property
    def banned(self) -> bool:
        """Whether this person may neither sign in nor be booked for."""
        return self.banned_at is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """The person behind a request, known from a verified token until `expires_at`."""

    user_id: UserId
    role: Role
    session_id: str
    expires_at: datetime

    @property
    def is_organizer(self) -> bool:
        """Whether this person may create, change and look behind slots."""
        return self.role.is_organizer


@dataclass(frozen=True, slots=True)
class UserFilter:
    """Which people; a field that is None asks for nothing."""

    text: str | None = None
    group: str | None = None
    banned: bool | None = None
    without_password: bool | None = None


def validate_user_name(name: str) -> str | None:
    """What is wrong with a person's name, or None."""
    return validate_line(name, MAX_USER_NAME_LENGTH) or (
        "A name is needed." if is_blank(name) else None
    )
