"""Guards of sessions and of the streams that belong to them."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from slotlock.auth import session_streams
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.users.sessions import SessionRepository

# Longer than any test, so that the outcome of a control does not depend on its speed.
SESSION_CACHE_S = 600.0
EFFECTIVELY_NEVER_S = 1e9


def cached_role_lookup(
    find_role: Callable[[SessionRepository, str], Awaitable[Role | None]],
) -> Any:
    """Return a lookup that caches roles for `SESSION_CACHE_S`."""
    cache: dict[str, tuple[Role | None, float]] = {}

    async def role_in(self: SessionRepository, session_id: str) -> Role | None:
        role, cached_at = cache.get(session_id, (None, 0.0))
        if time.monotonic() - cached_at > SESSION_CACHE_S:
            role = await find_role(self, session_id)
            cache[session_id] = role, time.monotonic()
        return role

    return role_in


def cache_session_roles() -> None:
    """Treat a session that was found open as open for `SESSION_CACHE_S`."""
    SessionRepository.find_role = cached_role_lookup(SessionRepository.find_role)  # type: ignore[method-assign]


def disable_stream_rechecks() -> None:
    """End streams only on a message over Redis."""
    session_streams.RECHECK_INTERVAL_S = EFFECTIVELY_NEVER_S


GUARDS = {"session-lookups": cache_session_roles, "stream-rechecks": disable_stream_rechecks}
