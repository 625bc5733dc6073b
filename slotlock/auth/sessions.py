"""Signing in and staying so: short access tokens, rotating refresh tokens, one family a sign-in."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.container import Auth
from slotlock.auth.tokens import (
    ACCESS_TOKEN_TTL,
    REFRESH_TOKEN_TTL,
    BadTokenError,
    TokenClaims,
    hash_token,
    new_token_id,
)
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.infrastructure.mongo.users.sessions import NewSession


@dataclass(frozen=True, slots=True)
class SignedInSession:
    """What a client keeps: `access_token` until `expires_at`, then `refresh_token` for new ones."""

    access_token: str
    refresh_token: str
    expires_at: datetime
    user: User


@dataclass(frozen=True, slots=True)
class InvalidSession:
    """The refresh token is no good, or was used before and has ended its whole family."""


async def open_session(
    auth: Auth, user: User, password_hash: str | None = None, user_agent: str | None = None
) -> SignedInSession:
    """Sign a person in, who showed the password of this hash, from a client that calls itself so.

    Whoever was banned or set another password meanwhile gets a session that is over: it is as if
    that had come a moment after.
    """
    now, refresh_id = auth.now(), new_token_id()
    opened = await auth.sessions.open(
        NewSession(user.id, refresh_id, now, now + REFRESH_TOKEN_TTL, user_agent, password_hash)
    )
    session_id, user = opened or (new_token_id(), user)
    return _issue_tokens(auth, user, session_id, refresh_id, now)


async def refresh_session(auth: Auth, refresh_token: str) -> SignedInSession | InvalidSession:
    """New tokens for an old refresh token, which is good once.

    One that comes a second time was stolen, now or the first time, and nobody can tell which: the
    session ends for both (RFC 9700, 4.14.2).
    """
    try:
        old = auth.tokens.verify("refresh", refresh_token)
    except BadTokenError:
        return InvalidSession()
    now = auth.now()
    new_id = new_token_id()
    if not await auth.sessions.rotate_refresh_token(
        old.session_id, old.id, new_id, now + REFRESH_TOKEN_TTL
    ):
        await end_session(auth, old.user_id, old.session_id)
        return InvalidSession()
    user = (await auth.users.find_many([old.user_id])).get(old.user_id)
    if user is None or user.banned:
        await end_session(auth, old.user_id, old.session_id)
        return InvalidSession()
    return _issue_tokens(auth, user, old.session_id, new_id, now)


async def logout(auth: Auth, caller: Caller) -> None:
    """End the session that this caller came with."""
    await end_session(auth, caller.user_id, caller.session_id)


async def end_session(auth: Auth, user_id: UserId, session_id: str) -> None:
    """End a person's session: all its tokens are refused from now on, its streams end."""
    await auth.sessions.end(session_id)
    auth.session_streams.session_changed(user_id)


def _issue_tokens(
    auth: Auth, user: User, session_id: str, refresh_id: str, now: datetime
) -> SignedInSession:
    access = TokenClaims(user.id, session_id, new_token_id(), now + ACCESS_TOKEN_TTL)
    refresh = TokenClaims(user.id, session_id, refresh_id, now + REFRESH_TOKEN_TTL)
    return SignedInSession(
        auth.tokens.sign("access", access, now),
        auth.tokens.sign("refresh", refresh, now),
        access.expires_at,
        user,
    )


SESSION_KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """An open session of the one who asks; `last_used_at` is its last sign-in or refresh.

    `key` is 32 hexadecimal digits and names it among theirs. `agent`: what the client that signed
    in calls itself, if it does. `current`: whether it is the one that asks.
    """

    key: str
    created_at: datetime
    last_used_at: datetime
    user_agent: str | None
    current: bool


async def list_sessions(auth: Auth, caller: Caller) -> list[SessionInfo]:
    """The caller's open sessions, the last that was opened first."""
    found = []
    for session in await auth.sessions.find_open(caller.user_id, auth.now()):
        used_at = session.expires_at - REFRESH_TOKEN_TTL
        current = session.id == caller.session_id
        opened_at = session.created_at or used_at
        found.append(
            SessionInfo(_session_key(session.id), opened_at, used_at, session.user_agent, current)
        )
    return found


async def end_session_by_key(auth: Auth, caller: Caller, key: str) -> None:
    """End the caller's session of this key; one that is not open, or not theirs, is no error."""
    for session in await auth.sessions.find_open(caller.user_id, auth.now()):
        if _session_key(session.id) == key:
            await end_session(auth, caller.user_id, session.id)


async def end_other_sessions(auth: Auth, caller: Caller) -> int:
    """End every session of the caller's but the one that asks; how many there were."""
    ended = await auth.sessions.end_others(caller.user_id, caller.session_id)
    auth.session_streams.session_changed(caller.user_id)
    return ended


def _session_key(session_id: str) -> str:
    # Not the id itself, which is in every token of the session.
    return hash_token(session_id)[:SESSION_KEY_LENGTH]
