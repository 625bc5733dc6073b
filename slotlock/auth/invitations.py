"""Tokens with which users set a password: invitations to a first one, and resets.

Those that somebody creates for others are codes (`tokens.py`). Those of a command are
long, as it has no key, and so are those that only a mail has.

A reset by mail follows the Forgot Password Cheat Sheet of OWASP. Its request has the same response
at the same time, and causes the same commands, whether or not there is an account.
"""

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from slotlock.auth.accounts import (
    ENDED_SIGN_INS,
    Banned,
    PasswordSignInOff,
    RegistrationClosed,
    ServerBusy,
    TooManyAttempts,
    busy_if_overloaded,
    distrusted_since,
    notice_mails,
)
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.password_policy.rules import validate_password
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import hash_token, new_code, stored_hashes
from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.notifications.mail_kinds import (
    INVITATION,
    PASSWORD_CHANGED,
    RESET_PASSWORD,
    MailKind,
    direct_mail,
)
from slotlock.domain.notifications.outbox import OutboxEntry, OutboxState
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.email_addresses import INVALID_LOGIN_NAME, normalize_login_name
from slotlock.domain.users.groups import clean_groups
from slotlock.domain.users.user import Caller, Registration, Role, User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter
from slotlock.infrastructure.mongo.users.credentials import MailedReset
from slotlock.infrastructure.mongo.users.sessions import EndedAccess

if TYPE_CHECKING:
    from slotlock.auth.mails.mail_throttle import ResetRequest  # imports the client of Redis

INVITATION_TTL = timedelta(days=14)
# A user gets one invitation by mail within this time.
MAIL_INTERVAL = timedelta(days=1)
TOKEN_BYTES = 32
# A token that replaces a password: its holder is waiting for it.
RESET_TTL = timedelta(hours=1)
MAILED_RESET_TTL = timedelta(minutes=30)
NO_MAIL = ProblemCode.NO_MAIL.problem()
BATCH_SIZE = 500
# How long requests for a new password wait for others, so that the next request of a client does
# not share the process with the mail.
RESET_PAUSE_S = (0.3, 1.0)
# The id of a user who does not exist.
NOBODY = UserId("0" * 24)


@value_object
class PasswordInvitation:
    """The data for one user's invitation; the token is shown only now, and empty if mailed.

    The `groups` sort letters: of a guardian without groups, they are those of the dependents.
    """

    user: User
    token: str
    expires_at: datetime
    groups: tuple[str, ...] = ()


@refusal(
    message="This link is no longer valid. If you have not set a password with it, please ask for "
    "a new one."
)
class InvalidInvitation:
    """The token of an invitation or reset is unknown, expired, used or replaced by a newer one."""


@outcome
class PasswordResetRequested:
    """If the address has an account, a mail with a link is on its way to it."""

    valid_minutes: int = shown("For how many minutes the link is valid.")


@outcome
class PasswordReset:
    """The new password is set. The user signs in with it."""

    ended_sessions: int = shown("How many sessions ended, which are all that the user had.")
    ended_sign_ins: int = shown(ENDED_SIGN_INS, default=0)


RequestPasswordResetOutcome = PasswordResetRequested | InvalidInput | TooManyAttempts
TokenRefusal = (
    InvalidInvitation
    | RegistrationClosed
    | Banned
    | InvalidInput
    | ServerBusy
    | TooManyAttempts  # of older servers: clients may select its fields
    | PasswordSignInOff
)
SetPasswordOutcome = SignedInSession | TokenRefusal
PasswordResetOutcome = PasswordReset | TokenRefusal


async def invite(
    auth: Auth,
    group: str | None,
    roles: Sequence[Role],
    caller: Caller | None = None,
    *,
    by_mail: bool = False,
) -> AsyncIterator[PasswordInvitation]:
    """Invite all users of these roles who have no password, in the order of their login names.

    `group` restricts them to a group, or to several, as `5a, 5b`.

    With `by_mail`, those with an address get their token in a mail, and only there, unless they
    got one within a day. New invitations replace earlier ones, but by mail none that was shown,
    as in a letter: users without an address who have a valid one are left out.

    `caller` is None for the command line. Users are loaded and written in batches, so memory use
    does not depend on their number. The iteration ends early if the caller's session ends or their
    role changes: a slow reader can take long.
    """
    after, now = None, auth.now() if by_mail else None
    mailed_before = now and now - MAIL_INTERVAL
    while users := await auth.repositories.invitations.find_invitable(
        group, roles, BATCH_SIZE, after, mailed_before, now
    ):
        if caller is not None and not await session_still_valid(auth, caller):
            return
        of_dependents = defaultdict[UserId, set[str]](set)
        for child in await auth.repositories.users.find_dependents([user.id for user in users]):
            for guardian in child.guardians:
                of_dependents[guardian].update(child.groups)
        for invitation in await _invite_users(auth, users, group, roles, caller, by_mail=by_mail):
            user = invitation.user
            groups = user.groups or clean_groups(of_dependents[user.id])
            yield replace(invitation, groups=groups)
        after = users[-1].login_name


async def invite_user(
    auth: Auth, user: User, caller: Caller, *, by_mail: bool = False
) -> PasswordInvitation | None:
    """Replace the invitation of a user, who gets it by mail, too, if the site sends mail.

    Return None if they changed or got a mail meanwhile, or cannot be invited.
    """
    by_mail = by_mail and auth.sends_mail
    invited = await _invite_users(
        auth, [user], None, [user.role], caller, by_mail=by_mail, shows_tokens=True
    )
    return invited[0] if invited else None


async def retry_failed_mail(auth: Auth, user: User) -> None:
    """Let a user get an invitation by mail at once if the last one could not be sent.

    Their address is tried again, too.
    """
    last = OutboxFilter(user_id=user.id, kind=INVITATION.name)
    for mail in (await auth.repositories.outbox.page(last, 1)).items:
        if mail.state in (OutboxState.FAILED, OutboxState.SUPPRESSED):
            await auth.repositories.invitations.forget_mail(user.id, mail.at)
            await auth.repositories.users.set_undeliverable(user, None)


async def was_recently_mailed(auth: Auth, user: User) -> bool:
    """Return whether a user got an invitation by mail within a day."""
    mailed_at = await auth.repositories.invitations.find_mailed_at(user.id)
    return mailed_at is not None and mailed_at >= auth.now() - MAIL_INTERVAL


async def _invite_users(
    auth: Auth,
    users: Sequence[User],
    group: str | None,
    roles: Sequence[Role],
    caller: Caller | None,
    *,
    by_mail: bool = False,
    shows_tokens: bool = False,
) -> list[PasswordInvitation]:
    now = auth.now()
    expires_at = now + INVITATION_TTL
    created = {user.id: _new_token(auth, is_code=caller is not None) for user in users}
    tokens = {user_id: token for user_id, (token, _) in created.items()}
    hashes = {created[user.id][1]: user for user in users}
    note = _invitation_note(group, users, caller.user_id if caller else None, now)
    mails = {
        hash_: invitation_mail(user, tokens[user.id], expires_at, now, caller)
        for hash_, user in hashes.items()
        if by_mail and user.email is not None
    }
    invited_ids = await auth.repositories.invitations.save(
        hashes,
        roles,
        expires_at,
        note,
        mails,
        mailed_before=now - MAIL_INTERVAL if by_mail else None,
        only_mailed=not shows_tokens,
    )
    is_hidden = {hash_ for hash_ in mails if not shows_tokens}
    return [
        PasswordInvitation(user, "" if hash_ in is_hidden else tokens[user.id], expires_at)
        for hash_, user in hashes.items()
        if user.id in invited_ids
    ]


def _new_token(auth: Auth, *, is_code: bool) -> tuple[str, str]:
    """Return a token, which spreadsheets never read as a formula or a number, and its hash."""
    if is_code:
        return new_code(auth.tokens)
    token = secrets.token_hex(TOKEN_BYTES)
    return token, hash_token(token)


def invitation_mail(
    user: User, token: str, expires_at: datetime, now: datetime, caller: Caller | None
) -> OutboxEntry:
    """Return the mail by which a caller invites a user. It verifies no address."""
    mail = _token_mail(INVITATION, user.id, user.email, token, expires_at, now)
    return replace(mail, data={**mail.data, "by": caller.user_id}) if caller else mail


def _token_mail(
    kind: MailKind,
    user_id: UserId,
    email: str | None,
    token: str,
    expires_at: datetime,
    now: datetime,
) -> OutboxEntry:
    version, data = hash_token(token)[:16], {"token": token}
    return direct_mail(
        kind,
        user_id,
        version,
        now,
        user_id=user_id,
        recipient=email,
        data=data,
        expires_at=expires_at,
    )


async def create_password_reset(
    auth: Auth, user: User, by: UserId | None = None
) -> PasswordInvitation | None:
    """Create a token with which the user replaces their password, once and within an hour.

    The old password and the sessions stay valid until then. Return None for a banned user.
    `by` is the admin; None for the command line.
    """
    now, expires_at = auth.now(), auth.now() + RESET_TTL
    token, hash_ = _new_token(auth, is_code=by is not None)
    if not await auth.repositories.invitations.save_reset(user.id, hash_, expires_at, by, now):
        return None
    return PasswordInvitation(user, token, expires_at)


async def request_password_reset(
    auth: Auth, login_name: str, client_address: str | None = None
) -> RequestPasswordResetOutcome:
    """Mail a link with which the user of an address sets a new password, or a first one.

    Nothing that a client can observe depends on whether there is such an account: a task of its
    own writes the token and the mail of all requests that wait.
    """
    address = normalize_login_name(login_name)
    if not auth.sends_mail or address is None:
        problem = INVALID_LOGIN_NAME if auth.sends_mail else NO_MAIL
        return InvalidInput((FieldProblem("email", problem),))
    request = None
    if auth.mail_throttle is not None:
        request = await auth.mail_throttle.count_reset_request(address, client_address)
        if request.retry_after_ms:
            return TooManyAttempts(request.retry_after_ms)
    account = await auth.repositories.users.find_with_password_hash(address)
    user = account[0] if account and _may_reset(auth, account[0]) else None
    auth.waiting_resets.append((user, request))
    if len(auth.waiting_resets) == 1:
        auth.run_in_background(_mail_password_resets(auth))
    return PasswordResetRequested(int(MAILED_RESET_TTL.total_seconds() / 60))


def _may_reset(auth: Auth, user: User) -> bool:
    if user.email is None or user.banned or not auth.accepts_password(user):
        return False
    return user.has_password or auth.registration is not Registration.CLOSED


async def _mail_password_resets(auth: Auth) -> None:
    """Write the tokens and the mails of all requests that wait.

    If none of them leads to a mail, that of nobody is written and undone: by their number, the
    commands are those for a mail.
    """
    try:
        await auth.pause(random.uniform(*RESET_PAUSE_S))  # noqa: S311 - no secret
    finally:  # the next request begins another task
        waiting = auth.waiting_resets.copy()
        auth.waiting_resets.clear()
    # Of several requests for a user, the last one counts, or one from where the user signed in.
    waiting.sort(key=lambda each: each[1] is not None and each[1].is_known)
    by_user = {user.id if user else NOBODY: (user, request) for user, request in waiting}
    if len(by_user) > 1:
        by_user.pop(NOBODY, None)
    resets = [*by_user.values()]
    times = await asyncio.gather(*(_reset_delay(auth, *each) for each in resets))
    now = auth.now()
    mails = [
        _reset_mail(user, delay, now)
        for (user, _), delay in zip(resets, times, strict=True)
        if user is not None and delay is not None
    ]
    nobody = _reset_mail(None, timedelta(), now)
    for batch in chunked(mails or [nobody], BATCH_SIZE):
        await auth.repositories.invitations.save_mailed_resets(batch, now)


async def _reset_delay(
    auth: Auth, user: User | None, request: "ResetRequest | None"
) -> timedelta | None:
    if auth.mail_throttle is None or request is None:
        return timedelta()
    return (await auth.mail_throttle.admit_reset(user, request)).delay


def _reset_mail(user: User | None, delay: timedelta, now: datetime) -> MailedReset:
    """Return the mail with a link, which is valid from when it leaves on."""
    token, due_at = secrets.token_hex(TOKEN_BYTES), now + delay
    user_id, email = (user.id, user.login_name) if user else (NOBODY, "")
    mail = _token_mail(RESET_PASSWORD, user_id, email, token, due_at + MAILED_RESET_TTL, now)
    return MailedReset(user_id, email, hash_token(token), replace(mail, due_at=due_at))


async def find_owner(auth: Auth, token: str) -> User | None:
    """Return the user whose password a token sets; None if it is not valid."""
    found = await _find(auth, token)
    return None if found is None or found[0].banned else found[0]


async def _find(auth: Auth, token: str) -> tuple[User, str] | None:
    """Return the user of a token, and what is stored of it."""
    for hash_ in stored_hashes(auth.tokens, token):
        if user := await auth.repositories.invitations.find(hash_, auth.now()):
            return user, hash_
    return None


@busy_if_overloaded
async def set_password(
    auth: Auth,
    token: str,
    password: str,
    user_agent: str | None = None,
    client_address: str | None = None,
    *,
    end_calendar_feed: bool = False,
    retain_sign_ins: bool = False,
) -> SetPasswordOutcome:
    """Set a password and open a session. A token works once, also in concurrent requests."""
    redeeming = _redeem(
        auth,
        token,
        password,
        client_address,
        end_calendar_feed=end_calendar_feed,
        retain_sign_ins=retain_sign_ins,
    )
    async with redeeming as redeemed:
        if not isinstance(redeemed, _Redeemed):
            return redeemed
        with after_write():
            return await open_session(auth, redeemed.user, redeemed.password_hash, user_agent)


@busy_if_overloaded
async def reset_password(
    auth: Auth,
    token: str,
    password: str,
    client_address: str | None = None,
    *,
    end_calendar_feed: bool = False,
    retain_sign_ins: bool = False,
) -> PasswordResetOutcome:
    """Set a password, and open no session: the password shows that its user remembers it."""
    redeeming = _redeem(
        auth,
        token,
        password,
        client_address,
        end_calendar_feed=end_calendar_feed,
        retain_sign_ins=retain_sign_ins,
    )
    async with redeeming as redeemed:
        if not isinstance(redeemed, _Redeemed):
            return redeemed
        return PasswordReset(redeemed.ended.sessions, redeemed.ended.sign_ins)


async def _find_owner_for(auth: Auth, token: str, password: str) -> tuple[User, str] | TokenRefusal:
    """Return the user of a token who may set this password, and what is stored of the token."""
    found = await _find(auth, token)
    if found is None:
        return InvalidInvitation()
    user, _ = found
    if user.banned:
        return Banned()
    if auth.registration is Registration.CLOSED and not user.has_password:
        return RegistrationClosed()
    if not auth.accepts_password(user):
        return PasswordSignInOff()
    if problem := validate_password(password, user.name, user.login_name):
        return InvalidInput((FieldProblem("password", problem),))
    return found


@value_object
class _Redeemed:
    """The user of a token, after it set the password."""

    user: User
    password_hash: str
    ended: EndedAccess


@asynccontextmanager
async def _redeem(
    auth: Auth,
    token: str,
    password: str,
    client_address: str | None,
    *,
    end_calendar_feed: bool,
    retain_sign_ins: bool,
) -> AsyncIterator[_Redeemed | TokenRefusal]:
    """Let a token set a password. The session of the user opens within the permit for that."""
    found = await _find_owner_for(auth, token, password)
    if not isinstance(found, tuple):
        yield found
        return
    owner, token_hash = found
    async with auth.password_hasher.permit(client_address, owner.id, is_known=True):
        password_hash = await auth.password_hasher.hash(password)
        redeemed = await auth.repositories.invitations.redeem(
            token_hash,
            password_hash,
            auth.now(),
            end_calendar_feed=end_calendar_feed,
            end_links_since=distrusted_since(auth, retain_sign_ins=retain_sign_ins),
            mails=notice_mails(auth, PASSWORD_CHANGED, owner) if owner.has_password else (),
        )
        if redeemed is None:
            yield InvalidInvitation()
            return
        user, ended = redeemed
        if ended.sessions:
            auth.session_streams.session_changed(user.id)
        yield _Redeemed(user, password_hash, ended)


def _invitation_note(
    group: str | None, users: Sequence[User], actor_id: UserId | None, now: datetime
) -> AuditNote:
    edits = (FieldEdit("users", None, str(len(users))), FieldEdit("group", None, group))
    user_ids = tuple(user.id for user in users)
    return AuditNote(now, actor_id, NoteAction.USERS_INVITED, edits, user_ids=user_ids)
