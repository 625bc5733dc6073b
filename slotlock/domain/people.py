"""The people of the system: who they are and what their role lets them do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

UserId = NewType("UserId", str)


class Role(StrEnum):
    """What a person may do: members book, organizers also keep slots, admins keep everything."""

    MEMBER = "member"
    ORGANIZER = "organizer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class User:
    """A person with an account."""

    id: UserId
    name: str
    email: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Caller:
    """The person behind a request, known from a verified token until `expires_at`."""

    user_id: UserId
    role: Role
    session_id: str
    expires_at: datetime

    @property
    def organises(self) -> bool:
        """Whether this person may create, change and look behind slots."""
        return self.role in (Role.ORGANIZER, Role.ADMIN)
