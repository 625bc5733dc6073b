"""Changing one's password, which ends every session but the one that does it."""

from dataclasses import dataclass

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    InvalidCredentials,
    TooManyAttempts,
    password_problem,
)
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import MAX_LENGTH, BusyError
from slotlock.domain.people import Caller
from slotlock.domain.refusals import FieldProblem, InvalidInput


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """The new password is the one that is good, and so many other sessions ended."""

    ended: int


async def change_password(
    auth: Auth, caller: Caller, current: str, new: str
) -> PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts:
    """Change the password of who knows it. No sign-in or refresh under way outlives this."""
    if problem := password_problem(new):
        return InvalidInput((FieldProblem("newPassword", problem),))
    changes = auth.users.password_changes
    old_hash = await changes.hash_of(caller.user_id)
    try:
        matched = len(current) <= MAX_LENGTH and await auth.passwords.matches(current, old_hash)
        if not matched or old_hash is None:
            return InvalidCredentials()
        new_hash = await auth.passwords.hash(new)
    except BusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    ended = await changes.change(caller.user_id, caller.session_id, old_hash, new_hash)
    if ended is None:  # another session of theirs was faster: it changed it, or ended this one
        return InvalidCredentials()
    auth.streams.changed(caller.user_id)
    return PasswordChanged(ended)
