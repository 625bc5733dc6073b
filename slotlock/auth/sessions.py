"""Sessions: short access tokens, rotating refresh tokens, one session per login."""

from datetime import datetime, timedelta

from slotlock.auth.container import Auth
from slotlock.auth.tokens import (
    ACCESS_TOKEN_TTL,
    REFRESH_TOKEN_TTL,
    BadTokenError,
    TokenClaims,
    hash_token,
    new_token_id,
)
from slotlock.domain.shared.declare import SentId, outcome, refusal, shown
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.infrastructure.mongo.client import after_write, is_unavailable
from slotlock.infrastructure.mongo.users.sessions import NewSession, Rotation

# Longer than most outages: a client whose exchange fails cannot know that it happened.
UNANSWERED_GRACE = timedelta(hours=1)


@value_object
class VerificationMail:
    """The mail with a code for a new account: when it leaves, or when to request it again.

    Both are None if the site sends no mail.
    """

    due_at: datetime | None = None
    retry_after_ms: int | None = None


@value_object
class SignedInSession:
    """The tokens of a session; `refresh_token` gets new ones when the access token expires.

    `verification_mail` is that of a new account whose address is to be verified.
    """

    access_token: str
    refresh_token: str
    expires_at: datetime
    user: User
    verification_mail: VerificationMail | None = None


@refusal(message="Your session has ended. Please sign in again.")
class InvalidSession:
    """The refresh token is invalid, or its session has ended. The user must sign in again."""


@outcome
class SessionEnded:
    """The caller has no open session of this id any more."""

    session_id: SentId = shown("The id of the ended session.")


@refusal(message="You have no such session.")
class SessionNotFound:
    """The caller has no session of this id."""


RefreshOutcome = SignedInSession | InvalidSession
EndSessionOutcome = SessionEnded | SessionNotFound


async def open_session(
    auth: Auth,
    user: User,
    password_hash: str | None = None,
    user_agent: str | None = None,
    identity: str | None = None,
    provider_session: str | None = None,
) -> SignedInSession:
    """Open a session for a user who gave the password of `password_hash`, or has the `identity`.

    If the user was banned, or changed the password, in the meantime, the session of the tokens has
    ended, as if the change had come a moment later.
    """
    now, refresh_id = auth.now(), new_token_id()
    opened = await auth.repositories.sessions.open(
        NewSession(
            user.id,
            refresh_id,
            now,
            now + REFRESH_TOKEN_TTL,
            user_agent,
            password_hash,
            identity,
            provider_session,
        )
    )
    session_id, user = opened or (new_token_id(), user)
    return _issue_tokens(auth, user, session_id, refresh_id, now, now)


async def refresh_session(auth: Auth, refresh_token: str) -> RefreshOutcome:
    """Exchange a refresh token, which is valid once, for new tokens.

    A response can be lost, and two tabs can refresh at once: for `refresh_grace` after a client
    first got the successor, a token gets the same one again, unless that was exchanged itself. An
    exchange that no client has got, because of an outage, is repeated for UNANSWERED_GRACE. A token
    that comes twice otherwise was stolen, and the server cannot know which client is the thief: the
    session ends for both (RFC 9700, 4.14.2).
    """
    now = auth.now()
    try:
        claims = auth.tokens.verify("refresh", refresh_token, now)
    except BadTokenError:
        return InvalidSession()
    rotation = await auth.repositories.sessions.rotate_refresh_token(
        claims.session_id,
        claims.id,
        Rotation(new_token_id(), now),
        now + REFRESH_TOKEN_TTL,
        now - auth.refresh_grace if auth.refresh_grace else None,
        now - UNANSWERED_GRACE,
    )
    if rotation is None:
        await end_session(auth, claims.user_id, claims.session_id)
        return InvalidSession()
    with after_write():
        user = (await auth.repositories.users.find_many([claims.user_id])).get(claims.user_id)
    if user is None or user.banned:
        await end_session(auth, claims.user_id, claims.session_id)
        return InvalidSession()
    await _mark_answered(auth, claims.session_id, rotation.token_id)
    return _issue_tokens(auth, user, claims.session_id, rotation.token_id, now, rotation.at)


async def _mark_answered(auth: Auth, session_id: str, refresh_id: str) -> None:
    """Begin the grace of a rotation, unless that failed: the client needs its response more."""
    try:
        await auth.repositories.sessions.mark_answered(session_id, refresh_id, auth.now())
    except Exception as error:
        if not is_unavailable(error):
            raise


async def logout(auth: Auth, caller: Caller) -> None:
    """End the caller's session."""
    await end_session(auth, caller.user_id, caller.session_id)


async def end_session(auth: Auth, user_id: UserId, session_id: str) -> None:
    """End a session: all its tokens become invalid and its streams end."""
    await auth.repositories.sessions.end(session_id)
    auth.session_streams.session_changed(user_id)


def _issue_tokens(
    auth: Auth, user: User, session_id: str, refresh_id: str, now: datetime, refreshed_at: datetime
) -> SignedInSession:
    access = TokenClaims(user.id, session_id, new_token_id(), now + ACCESS_TOKEN_TTL)
    refresh = TokenClaims(user.id, session_id, refresh_id, refreshed_at + REFRESH_TOKEN_TTL)
    return SignedInSession(
        auth.tokens.sign("access", access, now),
        auth.tokens.sign("refresh", refresh, refreshed_at),
        access.expires_at,
        user,
    )


SESSION_KEY_LENGTH = 32


@value_object
class SessionInfo:
    """An open session of the caller; `last_used_at` is the last login or refresh.

    `key`, 32 hexadecimal digits, identifies it among the user's sessions. `user_agent` is the name
    that the client gave at login. `current` marks the session of this request.
    """

    key: str
    created_at: datetime
    last_used_at: datetime
    user_agent: str | None
    current: bool


async def list_sessions(auth: Auth, caller: Caller) -> list[SessionInfo]:
    """Return the caller's open sessions, newest first."""
    infos = []
    for session in await auth.repositories.sessions.find_open(caller.user_id, auth.now()):
        last_used_at = session.expires_at - REFRESH_TOKEN_TTL
        infos.append(
            SessionInfo(
                key=_session_key(session.id),
                created_at=session.created_at or last_used_at,
                last_used_at=last_used_at,
                user_agent=session.user_agent,
                current=session.id == caller.session_id,
            )
        )
    return infos


async def end_session_by_key(auth: Auth, caller: Caller, key: str) -> None:
    """End the caller's session with this key; an unknown key changes nothing."""
    for session in await auth.repositories.sessions.find_open(caller.user_id, auth.now()):
        if _session_key(session.id) == key:
            await end_session(auth, caller.user_id, session.id)


async def end_other_sessions(auth: Auth, caller: Caller) -> int:
    """End all other sessions of the caller. Return how many there were."""
    ended = await auth.repositories.sessions.end_others(caller.user_id, caller.session_id)
    auth.session_streams.session_changed(caller.user_id)
    return ended


def _session_key(session_id: str) -> str:
    # The id itself is a claim of every token of the session: do not show it.
    return hash_token(session_id)[:SESSION_KEY_LENGTH]
