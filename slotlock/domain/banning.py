"""Who may ban whom, and who may invite whom to set a password."""

from dataclasses import dataclass

from slotlock.domain.people import Caller, Role, User
from slotlock.domain.texts import line_problem

MAX_REASON = 200


@dataclass(frozen=True, slots=True)
class NotOneself:
    """Nobody bans or unbans themselves."""


@dataclass(frozen=True, slots=True)
class AdminsOnly:
    """Organisers and admins are banned and unbanned by admins only."""


BanRefusal = NotOneself | AdminsOnly


def ban_refusal(caller: Caller, person: User) -> BanRefusal | None:
    """Why this organiser may not ban or unban this person; None when they may."""
    if person.id == caller.user_id:
        return NotOneself()
    if person.role is not Role.MEMBER and caller.role is not Role.ADMIN:
        return AdminsOnly()
    return None


def reason_problem(reason: str) -> str | None:
    """What is wrong with the reason for a ban, or None."""
    return line_problem(reason, MAX_REASON)


def invited_roles(caller: Caller) -> tuple[Role, ...]:
    """Whose first password this organiser may hand out.

    Whoever holds an invitation can take the account, so no invitation gives more than the role of
    who asked for it.
    """
    return tuple(Role) if caller.role is Role.ADMIN else (Role.MEMBER,)
