"""From the header of a request to the person behind it."""

from dataclasses import replace
from typing import TypeVar

from slotlock.auth.container import Auth
from slotlock.auth.tokens import EXPIRED_MESSAGE, BadTokenError, TokenClaims
from slotlock.domain.users.user import Caller, Role, UserId

MAX_CACHED_TOKENS = 20_000

CacheValue = TypeVar("CacheValue")


async def authenticate(auth: Auth, authorization: str | None) -> Caller | None:
    """The caller, or None for a request without credentials. Errors: BadTokenError.

    Whether the session is open, and the role, are as MongoDB tells after this was asked.
    """
    if not authorization:
        return None
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise BadTokenError("The authorization must be 'Bearer' and an access token.")
    token = _verify_token(auth, text.strip())
    role = await _load_role(auth, token.session_id)
    return Caller(token.user_id, role, token.session_id, token.expires_at)


async def reauthenticate(auth: Auth, caller: Caller) -> Caller:
    """The caller as of now, with the role they have by now. Errors: BadTokenError."""
    if caller.expires_at <= auth.now():
        raise BadTokenError(EXPIRED_MESSAGE)
    return replace(caller, role=await _load_role(auth, caller.session_id))


def token_user_id(auth: Auth, authorization: str | None) -> UserId | None:
    """Whose genuine token comes with a request; whether its session is open is not looked at.

    But one that was found to have ended speaks for nobody again: who stole it must not use up what
    its person may.
    """
    text = (authorization or "").partition(" ")[2].strip()
    try:
        token = _verify_token(auth, text)
    except BadTokenError:
        return None
    return None if token.session_id in auth.ended_sessions else token.user_id


async def session_still_valid(auth: Auth, caller: Caller) -> bool:
    """Whether the caller's session is open and their role as it was, for what takes long."""
    return await auth.sessions.find_role(caller.session_id) is caller.role


def _verify_token(auth: Auth, encoded_token: str) -> TokenClaims:
    """What the token says; only that it was signed by us and until when is remembered."""
    token = auth.verified_tokens.get(encoded_token)
    if token is None:
        token = auth.tokens.verify("access", encoded_token)
        _cache(auth.verified_tokens, encoded_token, token)
    elif token.expires_at <= auth.now():
        auth.verified_tokens.pop(encoded_token, None)
        raise BadTokenError(EXPIRED_MESSAGE)
    return token


async def _load_role(auth: Auth, session_id: str) -> Role:
    role = await auth.sessions.find_role(session_id)
    if role is None:
        _cache(auth.ended_sessions, session_id, None)
        raise BadTokenError("The session has ended.")
    return role


def _cache(cache: dict[str, CacheValue], key: str, value: CacheValue) -> None:
    # What came first goes first.
    if len(cache) >= MAX_CACHED_TOKENS and key not in cache:
        cache.pop(next(iter(cache)))
    cache[key] = value
