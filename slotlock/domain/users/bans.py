"""Who may ban whom, and who may invite whom to set a password."""

from dataclasses import dataclass

from slotlock.domain.shared.text import validate_line
from slotlock.domain.users.user import Caller, Role, User

MAX_BAN_REASON_LENGTH = 200


@dataclass(frozen=True, slots=True)
class CannotBanSelf:
    """Nobody bans or unbans themselves."""


@dataclass(frozen=True, slots=True)
class AdminRequired:
    """Organisers and admins are banned and unbanned by admins only."""


BanRefusal = CannotBanSelf | AdminRequired


def ban_refusal(caller: Caller, user: User) -> BanRefusal | None:
    """Why this organiser may not ban or unban this person; None when they may."""
    if user.id == caller.user_id:
        return CannotBanSelf()
    if user.role is not Role.MEMBER and caller.role is not Role.ADMIN:
        return AdminRequired()
    return None


def validate_ban_reason(reason: str) -> str | None:
    """What is wrong with the reason for a ban, or None."""
    return validate_line(reason, MAX_BAN_REASON_LENGTH)


def invitable_roles(caller: Caller) -> tuple[Role, ...]:
    """Whose first password this organiser may hand out.

    Whoever holds an invitation can take the account, so no invitation gives more than the role of
    who asked for it.
    """
    return tuple(Role) if caller.role is Role.ADMIN else (Role.MEMBER,)
