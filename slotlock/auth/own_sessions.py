"""One's own sessions: seeing them, and ending them."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.auth.auth import Auth
from slotlock.auth.hashes import hash_of
from slotlock.auth.sessions import end_session
from slotlock.auth.tokens import REFRESH_LIFE
from slotlock.domain.people import Caller

KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class OwnSession:
    """An open session of the one who asks; `last_used_at` is its last sign-in or refresh.

    `key` is 32 hexadecimal digits and names it among theirs. `agent`: what the client that signed
    in calls itself, if it does. `current`: whether it is the one that asks.
    """

    key: str
    created_at: datetime
    last_used_at: datetime
    agent: str | None
    current: bool


async def list_sessions(auth: Auth, caller: Caller) -> list[OwnSession]:
    """The caller's open sessions, the last that was opened first."""
    found = []
    for session in await auth.sessions.open_ones(caller.user_id, auth.now()):
        used_at = session.expires_at - REFRESH_LIFE
        current = session.id == caller.session_id
        opened_at = session.created_at or used_at
        found.append(OwnSession(_key(session.id), opened_at, used_at, session.agent, current))
    return found


async def end_one(auth: Auth, caller: Caller, key: str) -> None:
    """End the caller's session of this key; one that is not open, or not theirs, is no error."""
    for session in await auth.sessions.open_ones(caller.user_id, auth.now()):
        if _key(session.id) == key:
            await end_session(auth, caller.user_id, session.id)


async def end_others(auth: Auth, caller: Caller) -> int:
    """End every session of the caller's but the one that asks; how many there were."""
    ended = await auth.sessions.end_others(caller.user_id, caller.session_id)
    auth.streams.changed(caller.user_id)
    return ended


def _key(session_id: str) -> str:
    # Not the id itself, which is in every token of the session.
    return hash_of(session_id)[:KEY_LENGTH]
