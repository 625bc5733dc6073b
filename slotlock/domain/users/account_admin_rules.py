"""Rules for the administration of accounts: who may change or ban whom, and the words of both."""

from slotlock.domain.shared.declare import refusal, to_reader
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.text import validate_line
from slotlock.domain.users.user import Caller, Role, User, UserId

ERASED_NAME = "Erased user"


@refusal(message="Only an admin can do this to an organizer or an admin.")
class AdminRequired:
    """Only admins can change the accounts of organizers and admins."""


@refusal(
    message=to_reader(
        own="You are the last admin. Please make another user an admin first.",
        other="This is the last admin. Please make another user an admin first.",
        about="user_id",
    )
)
class LastAdmin:
    """The user is the last admin, who can neither lose the role nor be erased."""

    user_id: UserId


@refusal(message="You cannot erase your own account. Another admin can.")
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


MAX_BAN_REASON_LENGTH = 200


@refusal(message="You cannot ban or unban your own account.")
class CannotBanSelf:
    """Callers cannot ban or unban their own account."""


BanRefusal = CannotBanSelf | AdminRequired


def ban_refusal(caller: Caller, user: User) -> BanRefusal | None:
    """Return why this organizer cannot ban or unban the user; None if they can."""
    if user.id == caller.user_id:
        return CannotBanSelf()
    return account_change_refusal(caller, user)


def validate_ban_reason(reason: str) -> Problem | None:
    """Return the problem with the reason for a ban, or None."""
    return validate_line(reason, MAX_BAN_REASON_LENGTH)
