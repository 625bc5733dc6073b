"""Signing in and staying so: short access tokens, rotating refresh tokens, one family a sign-in."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.auth import Auth
from slotlock.auth.tokens import (
    ACCESS_LIFE,
    REFRESH_LIFE,
    BadTokenError,
    Token,
    new_token_id,
)
from slotlock.domain.people import Caller, User, UserId
from slotlock.stores.sessions import SignIn


@dataclass(frozen=True, slots=True)
class Session:
    """What a client keeps: `access_token` until `expires_at`, then `refresh_token` for new ones."""

    access_token: str
    refresh_token: str
    expires_at: datetime
    user: User


@dataclass(frozen=True, slots=True)
class InvalidSession:
    """The refresh token is no good, or was used before and has ended its whole family."""


async def open_session(
    auth: Auth, user: User, password_hash: str | None = None, agent: str | None = None
) -> Session:
    """Sign a person in, who showed the password of this hash, from a client that calls itself so.

    Whoever was banned or set another password meanwhile gets a session that is over: it is as if
    that had come a moment after.
    """
    now, refresh_id = auth.now(), new_token_id()
    opened = await auth.sessions.open(
        SignIn(user.id, refresh_id, now, now + REFRESH_LIFE, agent, password_hash)
    )
    session_id, user = opened or (new_token_id(), user)
    return _session(auth, user, session_id, refresh_id, now)


async def refresh_session(auth: Auth, refresh_token: str) -> Session | InvalidSession:
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
    if not await auth.sessions.rotate(old.session_id, old.id, new_id, now + REFRESH_LIFE):
        await end_session(auth, old.user_id, old.session_id)
        return InvalidSession()
    user = (await auth.users.by_ids([old.user_id])).get(old.user_id)
    if user is None or user.banned:
        await end_session(auth, old.user_id, old.session_id)
        return InvalidSession()
    return _session(auth, user, old.session_id, new_id, now)


async def logout(auth: Auth, caller: Caller) -> None:
    """End the session that this caller came with."""
    await end_session(auth, caller.user_id, caller.session_id)


async def end_session(auth: Auth, user_id: UserId, session_id: str) -> None:
    """End a person's session: all its tokens are refused from now on, its streams end."""
    await auth.sessions.end(session_id)
    auth.streams.changed(user_id)


def _session(auth: Auth, user: User, session_id: str, refresh_id: str, now: datetime) -> Session:
    access = Token(user.id, session_id, new_token_id(), now + ACCESS_LIFE)
    refresh = Token(user.id, session_id, refresh_id, now + REFRESH_LIFE)
    return Session(
        auth.tokens.sign("access", access, now),
        auth.tokens.sign("refresh", refresh, now),
        access.expires_at,
        user,
    )
