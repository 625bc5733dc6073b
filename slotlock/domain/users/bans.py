"""Permissions between users: who may ban whom, and who may invite whom to set a password."""

from slotlock.domain.shared.text import validate_line
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import Caller, Role, User

MAX_BAN_REASON_LENGTH = 200


@value_object
class CannotBanSelf:
    """Users cannot ban or unban themselves."""


@value_object
class AdminRequired:
    """Only admins can ban and unban organizers and admins."""


BanRefusal = CannotBanSelf | AdminRequired


def ban_refusal(caller: Caller, user: User) -> BanRefusal | None:
    """Return why this organizer cannot ban or unban the user; None if they can."""
    if user.id == caller.user_id:
        return CannotBanSelf()
    if user.role is not Role.MEMBER and caller.role is not Role.ADMIN:
        return AdminRequired()
    return None


def validate_ban_reason(reason: str) -> str | None:
    """Return the problem with the reason for a ban, or None."""
    return validate_line(reason, MAX_BAN_REASON_LENGTH)


def invitable_roles(caller: Caller) -> tuple[Role, ...]:
    """Return the roles of the users whose first password this organizer may hand out.

    An invitation gives its holder the account. Organizers must not gain an admin's rights by it.
    """
    return tuple(Role) if caller.role is Role.ADMIN else (Role.MEMBER,)
