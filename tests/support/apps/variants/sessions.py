"""Guards of sessions and of the streams that belong to them."""

from collections.abc import Awaitable, Callable
from typing import Any

from slotlock.auth.session_streams import SessionStreams
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.users.sessions import SessionRepository


def cached_role_lookup(
    find_role: Callable[[SessionRepository, str], Awaitable[Role | None]],
) -> Any:
    """Return a lookup that caches roles forever, so that a control does not depend on its speed."""
    cache: dict[str, Role | None] = {}

    async def role_in(self: SessionRepository, session_id: str) -> Role | None:
        if session_id not in cache:
            cache[session_id] = await find_role(self, session_id)
        return cache[session_id]

    return role_in


def cache_session_roles() -> None:
    """Treat a session that was found open as open forever."""
    SessionRepository.find_role = cached_role_lookup(SessionRepository.find_role)  # type: ignore[method-assign]


def ignore_changes(*_: object) -> None:
    """Check no session."""


def disable_stream_rechecks() -> None:
    """End streams only on a message over Redis."""
    SessionStreams._on_changes = ignore_changes  # type: ignore[assignment,method-assign]
    SessionStreams.recheck_all = ignore_changes  # type: ignore[assignment,method-assign]


GUARDS = {"session-lookups": cache_session_roles, "stream-rechecks": disable_stream_rechecks}
