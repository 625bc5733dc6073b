"""Rules for the administration of accounts: who may change whom, and what an erasure leaves."""

from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import Caller, Role, User, UserId

ERASED_NAME = "Erased user"


@value_object
class AdminRequired:
    """Only admins can change the accounts of organizers and admins."""


@value_object
class LastAdmin:
    """The user is the last admin, who can neither lose the role nor be erased."""

    user_id: UserId


@value_object
class CannotEraseSelf:
    """Admins cannot erase their own account."""


def manageable_roles(caller: Caller | None) -> tuple[Role, ...]:
    """Return the roles of the accounts that a caller may create, change, invite, ban and sign out.

    None is the command line. An organizer must not gain the rights of an admin, for example by an
    invitation that gives its holder the account.
    """
    if caller is None or caller.role is Role.ADMIN:
        return tuple(Role)
    return (Role.MEMBER,) if caller.is_organizer else ()


def role_refusal(caller: Caller | None, role: Role) -> AdminRequired | None:
    """Return why the caller cannot administer an account of this role; None if they can."""
    return None if role in manageable_roles(caller) else AdminRequired()


def account_change_refusal(caller: Caller | None, user: User) -> AdminRequired | None:
    """Return why the caller cannot change the user's account; None if they can.

    All that organizers may do to an account asks this, also a file of many. Organizers can change
    their own account as well.
    """
    if caller is not None and caller.is_organizer and caller.user_id == user.id:
        return None
    return role_refusal(caller, user.role)
