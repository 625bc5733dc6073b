"""Users, their roles, and the caller of a request."""

from datetime import datetime
from enum import StrEnum
from typing import NewType

from slotlock.domain.shared.text import is_blank, validate_line
from slotlock.domain.shared.values import value_object

UserId = NewType("UserId", str)

MAX_USER_NAME_LENGTH = 100


class Role(StrEnum):
    """The rights of a user: members book, organizers also manage slots, admins manage everyone."""

    MEMBER = "member"
    ORGANIZER = "organizer"
    ADMIN = "admin"

    @property
    def is_organizer(self) -> bool:
        """Return whether the role may create and change slots and see all their bookings."""
        return self in (Role.ORGANIZER, Role.ADMIN)


class Registration(StrEnum):
    """Who gets an account: everybody, those with an invitation, or those an operator chooses."""

    OPEN = "open"
    INVITED = "invited"
    CLOSED = "closed"


@value_object
class User:
    """A user account. Imported users have no password until they set one.

    `self_registered` is true until an organizer or operator vouches for the user.
    """

    id: UserId
    name: str
    email: str
    role: Role
    created_at: datetime
    groups: tuple[str, ...] = ()
    banned_at: datetime | None = None
    ban_reason: str | None = None
    has_password: bool = True
    erased_at: datetime | None = None
    self_registered: bool = False

    @property
    def is_unclaimed(self) -> bool:
        """Return whether nobody has checked that the address belongs to the user.

        An admin who appointed an organizer or an admin knows them.
        """
        return self.self_registered and self.role is Role.MEMBER

    @property
    def banned(self) -> bool:
        """Return whether the user can neither log in nor get bookings."""
        return self.banned_at is not None

    @property
    def erased(self) -> bool:
        """Return whether the account was erased: only its id and past bookings are left."""
        return self.erased_at is not None


@value_object
class Caller:
    """The user behind a request, authenticated by a token that is valid until `expires_at`."""

    user_id: UserId
    role: Role
    session_id: str
    expires_at: datetime

    @property
    def is_organizer(self) -> bool:
        """Return whether the caller may create and change slots and see all their bookings."""
        return self.role.is_organizer


@value_object
class UserFilter:
    """The users to list; a field that is None does not restrict the list."""

    text: str | None = None
    group: str | None = None
    banned: bool | None = None
    without_password: bool | None = None


def validate_user_name(name: str) -> str | None:
    """Return the problem with a user's name, or None."""
    return validate_line(name, MAX_USER_NAME_LENGTH) or (
        "Please enter a name." if is_blank(name) else None
    )
