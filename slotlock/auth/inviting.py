"""Inviting those who never set a password to do so, by a token that somebody hands to them."""

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    Banned,
    TooManyAttempts,
    password_problem,
)
from slotlock.auth.auth import Auth
from slotlock.auth.hashes import hash_of
from slotlock.auth.identity import still_holds
from slotlock.auth.passwords import BusyError
from slotlock.auth.sessions import Session, open_session
from slotlock.domain.audit import Edit, Happening
from slotlock.domain.notes import Note
from slotlock.domain.people import Caller, Role, User, UserId
from slotlock.domain.refusals import FieldProblem, InvalidInput

INVITATION_LIFE = timedelta(days=14)
TOKEN_BYTES = 32
BATCH = 500


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a person needs to set their first password; the token is told here and never again."""

    email: str
    name: str
    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InvalidInvitation:
    """The token was used, is too old, gave way to a newer one, or never was."""


async def invite(
    auth: Auth, group: str | None, roles: Sequence[Role], by: Caller | None = None
) -> AsyncIterator[Invitation]:
    """New invitations, by address, for everybody of these roles who never set a password.

    Earlier invitations of theirs end. The people are read and written some at a time, so that it
    costs no more memory for many than for few. `by` is None for the command line. There are no more
    when their session has ended meanwhile, or their role is another: who reads slowly could go on
    for long.
    """
    after = None
    while people := await auth.users.invitations.invitable(group, roles, BATCH, after):
        if by is not None and not await still_holds(auth, by):
            return
        now = auth.now()
        until = now + INVITATION_LIFE
        # In hexadecimal, which no spreadsheet takes for a formula.
        tokens = {person.id: secrets.token_hex(TOKEN_BYTES) for person in people}
        hashes = {user_id: hash_of(token) for user_id, token in tokens.items()}
        note = _note(group, people, by.user_id if by else None, now)
        invited = await auth.users.invitations.keep(hashes, roles, until, note)
        for person in people:
            if person.id in invited:
                yield Invitation(person.email, person.name, tokens[person.id], until)
        after = people[-1].email


async def set_password(
    auth: Auth, token: str, password: str, agent: str | None = None
) -> Session | InvalidInvitation | Banned | InvalidInput | TooManyAttempts:
    """Set a first password and sign in. A token is good once, however often it is sent at once."""
    if problem := password_problem(password):
        return InvalidInput((FieldProblem("password", problem),))
    now, hash_ = auth.now(), hash_of(token)
    person = await auth.users.invitations.find(hash_, now)
    if person is None:
        return InvalidInvitation()
    if person.banned:
        return Banned()
    try:
        password_hash = await auth.passwords.hash(password)
    except BusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    user = await auth.users.invitations.use(hash_, password_hash, now)
    if user is None:
        return InvalidInvitation()
    return await open_session(auth, user, password_hash, agent)


def _note(group: str | None, people: Sequence[User], by: UserId | None, now: datetime) -> Note:
    edits = (Edit("people", None, str(len(people))), Edit("group", None, group))
    whom = tuple(person.id for person in people)
    return Note(now, by, Happening.PEOPLE_INVITED, edits, user_ids=whom)
