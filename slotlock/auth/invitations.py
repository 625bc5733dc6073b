"""Inviting those who never set a password to do so, by a token that somebody hands to them."""

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    Banned,
    TooManyAttempts,
    validate_password,
)
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.passwords import HasherBusyError
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import hash_token
from slotlock.domain.audit.log import AuditAction, FieldEdit
from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import Caller, Role, User, UserId

INVITATION_TTL = timedelta(days=14)
TOKEN_BYTES = 32
BATCH_SIZE = 500


@dataclass(frozen=True, slots=True)
class PasswordInvitation:
    """What a person needs to set their first password; the token is told here and never again."""

    email: str
    name: str
    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InvalidInvitation:
    """The token was used, is too old, gave way to a newer one, or never was."""


async def invite(
    auth: Auth, group: str | None, roles: Sequence[Role], caller: Caller | None = None
) -> AsyncIterator[PasswordInvitation]:
    """New invitations, by address, for everybody of these roles who never set a password.

    Earlier invitations of theirs end. The people are read and written some at a time, so that it
    costs no more memory for many than for few. `by` is None for the command line. There are no more
    when their session has ended meanwhile, or their role is another: who reads slowly could go on
    for long.
    """
    after = None
    while people := await auth.users.invitations.find_invitable(group, roles, BATCH_SIZE, after):
        if caller is not None and not await session_still_valid(auth, caller):
            return
        now = auth.now()
        until = now + INVITATION_TTL
        # In hexadecimal, which no spreadsheet takes for a formula.
        tokens = {person.id: secrets.token_hex(TOKEN_BYTES) for person in people}
        hashes = {user_id: hash_token(token) for user_id, token in tokens.items()}
        note = _invitation_note(group, people, caller.user_id if caller else None, now)
        invited = await auth.users.invitations.save(hashes, roles, until, note)
        for person in people:
            if person.id in invited:
                yield PasswordInvitation(person.email, person.name, tokens[person.id], until)
        after = people[-1].email


async def set_password(
    auth: Auth, token: str, password: str, user_agent: str | None = None
) -> SignedInSession | InvalidInvitation | Banned | InvalidInput | TooManyAttempts:
    """Set a first password and sign in. A token is good once, however often it is sent at once."""
    if problem := validate_password(password):
        return InvalidInput((FieldProblem("password", problem),))
    now, hash_ = auth.now(), hash_token(token)
    person = await auth.users.invitations.find(hash_, now)
    if person is None:
        return InvalidInvitation()
    if person.banned:
        return Banned()
    try:
        password_hash = await auth.passwords.hash(password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    user = await auth.users.invitations.redeem(hash_, password_hash, now)
    if user is None:
        return InvalidInvitation()
    return await open_session(auth, user, password_hash, user_agent)


def _invitation_note(
    group: str | None, users: Sequence[User], actor_id: UserId | None, now: datetime
) -> AuditNote:
    edits = (FieldEdit("people", None, str(len(users))), FieldEdit("group", None, group))
    whom = tuple(person.id for person in users)
    return AuditNote(now, actor_id, AuditAction.USERS_INVITED, edits, user_ids=whom)
