"""From the header of a request to the person behind it."""

from datetime import timedelta

from slotlock.auth.auth import Auth, Known
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.people import Caller, UserId

# How long an ended session or a changed role may go unnoticed in another process.
SESSION_SEEN_FOR = timedelta(seconds=5)
MOST_KNOWN = 20_000


async def identify(auth: Auth, authorization: str | None) -> Caller | None:
    """The caller, or None for a request without credentials. Errors: BadTokenError."""
    if not authorization:
        return None
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise BadTokenError("The authorization must be 'Bearer' and an access token.")
    return await _caller(auth, text.strip())


def claimed(auth: Auth, authorization: str | None) -> UserId | None:
    """Whose genuine token comes with a request; whether its session is open is not looked at."""
    text = (authorization or "").partition(" ")[2].strip()
    if known := auth.known.get(text):
        return known.caller.user_id
    try:
        return auth.tokens.verify("access", text).user_id
    except BadTokenError:
        return None


async def _caller(auth: Auth, text: str) -> Caller:
    now = auth.now()
    known = auth.known.get(text)
    if known is None:
        token = auth.tokens.verify("access", text)
        user_id, session_id, expires_at = token.user_id, token.session_id, token.expires_at
    elif known.caller.expires_at <= now:
        auth.known.pop(text, None)
        raise BadTokenError("The token has expired.")
    elif now - known.seen_open_at < SESSION_SEEN_FOR:
        return known.caller
    else:
        caller = known.caller
        user_id, session_id, expires_at = caller.user_id, caller.session_id, caller.expires_at
    role = await auth.sessions.role_in(session_id)
    if role is None:
        auth.known.pop(text, None)
        raise BadTokenError("The session has ended.")
    caller = Caller(user_id, role, session_id, expires_at)
    if len(auth.known) >= MOST_KNOWN:
        auth.known.pop(next(iter(auth.known)))
    auth.known[text] = Known(caller, now)
    return caller
