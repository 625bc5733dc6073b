"""From the header of a request to the person behind it."""

from dataclasses import replace
from typing import TypeVar

from slotlock.auth.auth import Auth
from slotlock.auth.tokens import EXPIRED, BadTokenError, Token
from slotlock.domain.people import Caller, Role, UserId

MOST_KNOWN = 20_000

Known = TypeVar("Known")


async def identify(auth: Auth, authorization: str | None) -> Caller | None:
    """The caller, or None for a request without credentials. Errors: BadTokenError.

    Whether the session is open, and the role, are as MongoDB tells after this was asked.
    """
    if not authorization:
        return None
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise BadTokenError("The authorization must be 'Bearer' and an access token.")
    token = _verified(auth, text.strip())
    role = await _role_in(auth, token.session_id)
    return Caller(token.user_id, role, token.session_id, token.expires_at)


async def identify_again(auth: Auth, caller: Caller) -> Caller:
    """The caller as of now, with the role they have by now. Errors: BadTokenError."""
    if caller.expires_at <= auth.now():
        raise BadTokenError(EXPIRED)
    return replace(caller, role=await _role_in(auth, caller.session_id))


def claimed(auth: Auth, authorization: str | None) -> UserId | None:
    """Whose genuine token comes with a request; whether its session is open is not looked at.

    But one that was found to have ended speaks for nobody again: who stole it must not use up what
    its person may.
    """
    text = (authorization or "").partition(" ")[2].strip()
    try:
        token = _verified(auth, text)
    except BadTokenError:
        return None
    return None if token.session_id in auth.ended else token.user_id


async def still_holds(auth: Auth, caller: Caller) -> bool:
    """Whether the caller's session is open and their role as it was, for what takes long."""
    return await auth.sessions.role_in(caller.session_id) is caller.role


def _verified(auth: Auth, text: str) -> Token:
    """What the token says; only that it was signed by us and until when is remembered."""
    token = auth.known.get(text)
    if token is None:
        token = auth.tokens.verify("access", text)
        _remember(auth.known, text, token)
    elif token.expires_at <= auth.now():
        auth.known.pop(text, None)
        raise BadTokenError(EXPIRED)
    return token


async def _role_in(auth: Auth, session_id: str) -> Role:
    role = await auth.sessions.role_in(session_id)
    if role is None:
        _remember(auth.ended, session_id, None)
        raise BadTokenError("The session has ended.")
    return role


def _remember(kept: dict[str, Known], key: str, value: Known) -> None:
    # What came first goes first.
    if len(kept) >= MOST_KNOWN and key not in kept:
        kept.pop(next(iter(kept)))
    kept[key] = value
