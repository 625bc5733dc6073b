"""One's own sessions: seeing them, and ending them."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.auth import Auth
from slotlock.auth.hashes import hash_token
from slotlock.auth.sessions import end_session
from slotlock.auth.tokens import REFRESH_TOKEN_TTL
from slotlock.domain.people import Caller

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
