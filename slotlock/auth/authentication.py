"""Authenticate requests: from the `Authorization` header to the caller."""

from contextlib import suppress
from dataclasses import replace

from slotlock.auth.container import Auth
from slotlock.auth.tokens import EXPIRED_MESSAGE, BadTokenError, TokenClaims
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.users.user import Caller, UserId

VerifiedToken = TokenClaims | BadTokenError | None


def verify_authorization(auth: Auth, authorization: str | None) -> VerifiedToken:
    """Return the claims of the header's access token, or None without a header.

    An invalid token is returned as its BadTokenError, because a request is charged to a rate limit
    before it is rejected. The session may have ended: `load_caller` checks it.
    """
    if not authorization:
        return None
    claims = auth.verified_tokens.get(authorization)
    if claims is None:
        verified = _verify_first_use(auth, authorization)
        if isinstance(verified, TokenClaims):
            auth.verified_tokens.put(authorization, verified)
        return verified
    if claims.expires_at <= auth.now():
        return BadTokenError(EXPIRED_MESSAGE)
    return claims


def _verify_first_use(auth: Auth, authorization: str) -> TokenClaims | BadTokenError:
    with suppress(UnicodeError):  # a header is read as Latin-1, but a pasted blank may be UTF-8
        authorization = authorization.encode("latin-1").decode()
    scheme, *rest = strip_blanks(authorization).split(maxsplit=1) or [""]
    if scheme.lower() != "bearer" or not rest:
        return BadTokenError("The authorization must be 'Bearer' and an access token.")
    try:
        return auth.tokens.verify("access", rest[0], auth.now())
    except BadTokenError as error:
        return error


def user_to_charge(auth: Auth, token: VerifiedToken) -> UserId | None:
    """Return the user whose rate limit a request counts against, without a query.

    The token of an ended session counts for no user, as far as this process knows of the end. A
    thief of the token must not use up its user's limit.
    """
    if not isinstance(token, TokenClaims) or token.session_id in auth.ended_sessions:
        return None
    return token.user_id


async def load_caller(auth: Auth, token: VerifiedToken) -> Caller | None:
    """Return the caller with the role that MongoDB has now, or None without a token.

    Raises:
        BadTokenError: the token is invalid or its session has ended.
    """
    if token is None:
        return None
    if isinstance(token, BadTokenError):
        raise token
    role = await auth.repositories.sessions.find_role(token.session_id)
    if role is None:
        raise end_of_session(auth, token.session_id)
    return Caller(token.user_id, role, token.session_id, token.expires_at)


async def authenticate(auth: Auth, authorization: str | None) -> Caller | None:
    """Return the caller of a request, or None without an `Authorization` header.

    Raises:
        BadTokenError: the token is invalid or its session has ended.
    """
    return await load_caller(auth, verify_authorization(auth, authorization))


async def recheck_caller(auth: Auth, caller: Caller) -> Caller:
    """Return the caller with their current role.

    Raises:
        BadTokenError: the token has expired or its session has ended.
    """
    if caller.expires_at <= auth.now():
        raise BadTokenError(EXPIRED_MESSAGE)
    role = await auth.repositories.sessions.find_role(caller.session_id)
    if role is None:
        raise end_of_session(auth, caller.session_id)
    return replace(caller, role=role)


async def session_still_valid(auth: Auth, caller: Caller) -> bool:
    """Return whether the caller's session is open and their role unchanged, during long work."""
    return await auth.repositories.sessions.find_role(caller.session_id) is caller.role


def end_of_session(auth: Auth, session_id: str) -> BadTokenError:
    """Remember that a session has ended, and return the error for its tokens."""
    auth.ended_sessions.put(session_id, True)
    return BadTokenError("The session has ended.")
