"""Rules for the administration of accounts: who may change whom, and what an erasure leaves."""

from slotlock.domain.shared.values import value_object
from slotlock.domain.users.bans import AdminRequired
from slotlock.domain.users.user import Caller, Role, User, UserId

ERASED_NAME = "Erased user"


@value_object
class LastAdmin:
    """The user is the last admin, who can neither lose the role nor be erased."""

    user_id: UserId


@value_object
class CannotEraseSelf:
    """Admins cannot erase their own account."""


def role_refusal(caller: Caller, role: Role) -> AdminRequired | None:
    """Return why an organizer cannot administer an account of this role; None if they can."""
    if role is not Role.MEMBER and caller.role is not Role.ADMIN:
        return AdminRequired()
    return None


def change_refusal(caller: Caller, user: User) -> AdminRequired | None:
    """Return why an organizer cannot change the user's account; None if they can."""
    return None if user.id == caller.user_id else role_refusal(caller, user.role)
