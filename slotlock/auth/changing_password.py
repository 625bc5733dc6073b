"""Changing one's password, which ends every session but the one that does it."""

from dataclasses import dataclass

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    InvalidCredentials,
    TooManyAttempts,
    validate_password,
)
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import MAX_PASSWORD_LENGTH, HasherBusyError
from slotlock.domain.people import Caller
from slotlock.domain.refusals import FieldProblem, InvalidInput


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """The new password is the one that is good, and so many other sessions ended."""

    ended_sessions: int


async def change_password(
    auth: Auth, caller: Caller, current_password: str, new_password: str
) -> PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts:
    """Change the password of who knows it. No sign-in or refresh under way outlives this."""
    if problem := validate_password(new_password):
        return InvalidInput((FieldProblem("newPassword", problem),))
    changes = auth.users.password_writer
    old_hash = await changes.find_hash(caller.user_id)
    try:
        matched = len(current_password) <= MAX_PASSWORD_LENGTH and await auth.passwords.matches(
            current_password, old_hash
        )
        if not matched or old_hash is None:
            return InvalidCredentials()
        new_hash = await auth.passwords.hash(new_password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    ended = await changes.update(caller.user_id, caller.session_id, old_hash, new_hash)
    if ended is None:  # another session of theirs was faster: it changed it, or ended this one
        return InvalidCredentials()
    auth.session_streams.session_changed(caller.user_id)
    return PasswordChanged(ended)
