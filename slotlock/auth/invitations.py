"""Invitations: tokens with which imported users set their first password."""

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    Banned,
    TooManyAttempts,
)
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.passwords import HasherBusyError
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import hash_token
from slotlock.domain.audit.log import AuditAction, FieldEdit
from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.credentials import validate_password
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.client import after_write

INVITATION_TTL = timedelta(days=14)
TOKEN_BYTES = 32
# A token that replaces a password: its holder is waiting for it.
RESET_TTL = timedelta(hours=1)
BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class PasswordInvitation:
    """The data for one user's invitation; the token is shown only now."""

    email: str
    name: str
    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InvalidInvitation:
    """The token is unknown, used, expired, or replaced by a newer one."""


async def invite(
    auth: Auth, group: str | None, roles: Sequence[Role], caller: Caller | None = None
) -> AsyncIterator[PasswordInvitation]:
    """Invite all users of these roles who have no password, in the order of their addresses.

    New invitations replace earlier ones. `caller` is None for the command line. Users are loaded
    and written in batches, so memory use does not depend on their number. The iteration ends early
    if the caller's session ends or their role changes: a slow reader can take long.
    """
    after = None
    while users := await auth.invitations.find_invitable(group, roles, BATCH_SIZE, after):
        if caller is not None and not await session_still_valid(auth, caller):
            return
        for invitation in await _invite_users(auth, users, group, roles, caller):
            yield invitation
        after = users[-1].email


async def invite_user(auth: Auth, user: User, caller: Caller) -> PasswordInvitation | None:
    """Replace the invitation of a user; None if they changed meanwhile, or cannot be invited."""
    invited = await _invite_users(auth, [user], None, [user.role], caller)
    return invited[0] if invited else None


async def _invite_users(
    auth: Auth,
    users: Sequence[User],
    group: str | None,
    roles: Sequence[Role],
    caller: Caller | None,
) -> list[PasswordInvitation]:
    now = auth.now()
    expires_at = now + INVITATION_TTL
    # Hexadecimal, because spreadsheets never read it as a formula.
    tokens = {user.id: secrets.token_hex(TOKEN_BYTES) for user in users}
    hashes = {hash_token(tokens[user.id]): user for user in users}
    note = _invitation_note(group, users, caller.user_id if caller else None, now)
    invited_ids = await auth.invitations.save(hashes, roles, expires_at, note)
    return [
        PasswordInvitation(user.email, user.name, tokens[user.id], expires_at)
        for user in users
        if user.id in invited_ids
    ]


async def create_password_reset(auth: Auth, user: User) -> PasswordInvitation | None:
    """Create a token with which the user replaces their password, once and within an hour.

    The old password and the sessions stay valid until then. Return None for a banned user.
    """
    now, token = auth.now(), secrets.token_hex(TOKEN_BYTES)
    expires_at = now + RESET_TTL
    if not await auth.invitations.save_reset(user.id, hash_token(token), expires_at, now):
        return None
    return PasswordInvitation(user.email, user.name, token, expires_at)


async def set_password(
    auth: Auth, token: str, password: str, user_agent: str | None = None
) -> SignedInSession | InvalidInvitation | Banned | InvalidInput | TooManyAttempts:
    """Set a password and open a session. A token works once, also in concurrent requests."""
    if problem := validate_password(password):
        return InvalidInput((FieldProblem("password", problem),))
    now, token_hash = auth.now(), hash_token(token)
    invited_user = await auth.invitations.find(token_hash, now)
    if invited_user is None:
        return InvalidInvitation()
    if invited_user.banned:
        return Banned()
    try:
        password_hash = await auth.password_hasher.hash(password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    user = await auth.invitations.redeem(token_hash, password_hash, now)
    if user is None:
        return InvalidInvitation()
    with after_write():
        return await open_session(auth, user, password_hash, user_agent)


def _invitation_note(
    group: str | None, users: Sequence[User], actor_id: UserId | None, now: datetime
) -> AuditNote:
    edits = (FieldEdit("users", None, str(len(users))), FieldEdit("group", None, group))
    user_ids = tuple(user.id for user in users)
    return AuditNote(now, actor_id, AuditAction.USERS_INVITED, edits, user_ids=user_ids)
