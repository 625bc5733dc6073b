"""Guards of sessions, switched off one by one."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from slotlock.auth import session_streams
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.users.sessions import SessionRepository

# Longer than any test takes, so that its control does not depend on how fast it is.
SESSION_CACHE_S = 600.0
EFFECTIVELY_NEVER_S = 1e9


def cached_role_lookup(
    find_role: Callable[[SessionRepository, str], Awaitable[Role | None]],
) -> Any:
    """A look at a session that is good for some time."""
    seen: dict[str, tuple[Role | None, float]] = {}

    async def role_in(self: SessionRepository, session_id: str) -> Role | None:
        role, at = seen.get(session_id, (None, 0.0))
        if time.monotonic() - at > SESSION_CACHE_S:
            role = await find_role(self, session_id)
            seen[session_id] = role, time.monotonic()
        return role

    return role_in


def cache_session_roles() -> None:
    """A session that was seen to be open counts as open for some time."""
    SessionRepository.find_role = cached_role_lookup(SessionRepository.find_role)  # type: ignore[method-assign]


def disable_stream_rechecks() -> None:
    """Streams end only when somebody says so over Redis."""
    session_streams.RECHECK_INTERVAL_S = EFFECTIVELY_NEVER_S


GUARDS = {"session-lookups": cache_session_roles, "stream-rechecks": disable_stream_rechecks}
