"""Bans: who may ban whom, and the reason of a ban."""

from slotlock.domain.shared.text import validate_line
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.administration import AdminRequired, account_change_refusal
from slotlock.domain.users.user import Caller, User

MAX_BAN_REASON_LENGTH = 200


@value_object
class CannotBanSelf:
    """Users cannot ban or unban themselves."""


BanRefusal = CannotBanSelf | AdminRequired


def ban_refusal(caller: Caller, user: User) -> BanRefusal | None:
    """Return why this organizer cannot ban or unban the user; None if they can."""
    if user.id == caller.user_id:
        return CannotBanSelf()
    return account_change_refusal(caller, user)


def validate_ban_reason(reason: str) -> str | None:
    """Return the problem with the reason for a ban, or None."""
    return validate_line(reason, MAX_BAN_REASON_LENGTH)
