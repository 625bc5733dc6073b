"""Streams that are open in this process: each ends when its session does, or its person's role.

A level, not an event: what is told, here or over Redis, is only whose sessions to look at now, and
MongoDB says which are open. Every few seconds all are looked at, so that a lost word heals.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.wakeup import RefreshTimer

log = logging.getLogger("slotlock.streams")

RECHECK_INTERVAL_S = 2.0

OnSessionEnd = Callable[[], object]


class SessionStreams:
    """Who is listening in this process, and how each is told that it is over."""

    def __init__(self) -> None:
        self._open_streams: dict[UserId, dict[OnSessionEnd, Caller]] = {}
        self._changed_users: set[UserId] = set()
        self._refresh_timer = RefreshTimer(RECHECK_INTERVAL_S)
        self._publish_change: Callable[[UserId], object] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(
        self, sessions: SessionRepository, publish_change: Callable[[UserId], object]
    ) -> None:
        """Begin to look; `tell` tells the other processes."""
        self._publish_change = publish_change
        self._task = asyncio.create_task(self._run(sessions))

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def register(self, caller: Caller, on_end: OnSessionEnd) -> Callable[[], None]:
        """Call `end` once, when the caller's session ends; returns what takes that back."""
        self._open_streams.setdefault(caller.user_id, {})[on_end] = caller
        # It may have ended since the caller was identified, before anybody here listened.
        self.recheck(caller.user_id)
        return lambda: self._unregister(caller.user_id, on_end)

    def session_changed(self, user_id: UserId) -> None:
        """Sessions of this person ended, or have another role: look here, and tell the others."""
        self.recheck(user_id)
        if self._publish_change is not None:
            self._publish_change(user_id)

    def recheck(self, user_id: UserId) -> None:
        """Look at the sessions of this person soon."""
        if user_id in self._open_streams:
            self._changed_users.add(user_id)
            self._refresh_timer.trigger()

    def _unregister(self, user_id: UserId, on_end: OnSessionEnd) -> None:
        theirs = self._open_streams.get(user_id, {})
        theirs.pop(on_end, None)
        if not theirs:
            self._open_streams.pop(user_id, None)

    async def _run(self, sessions: SessionRepository) -> None:
        while True:
            all_of_them = await self._refresh_timer.wait()
            whose, self._changed_users = self._changed_users, set()
            if all_of_them:
                whose = set(self._open_streams)
            try:
                await self._recheck_users(sessions, whose)
            except Exception as error:
                # The truth may be away for a while, and is asked again by then.
                why = None if is_unavailable(error) else error
                log.warning("open sessions could not be read from MongoDB", exc_info=why)

    async def _recheck_users(self, sessions: SessionRepository, user_ids: Iterable[UserId]) -> None:
        # Streams that begin while this reads have asked for a look of their own.
        streams = [
            (u, end, c) for u in user_ids for end, c in self._open_streams.get(u, {}).items()
        ]
        if not streams:
            return
        roles = await sessions.find_roles([*{caller.session_id for _, _, caller in streams}])
        for user_id, end, caller in streams:
            if roles.get(caller.session_id) is not caller.role:
                self._unregister(user_id, end)
                end()
