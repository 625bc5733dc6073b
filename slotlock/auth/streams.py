"""Streams that are open in this process: each ends when its session does, or its person's role.

A level, not an event: what is told, here or over Redis, is only whose sessions to look at now, and
MongoDB says which are open. Every few seconds all are looked at, so that a lost word heals.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable

from slotlock.domain.people import Caller, UserId
from slotlock.stores.mongo import is_away
from slotlock.stores.sessions import Sessions
from slotlock.stores.waking import Wake

log = logging.getLogger("slotlock.streams")

HEAL_EVERY_S = 2.0

End = Callable[[], object]


class Streams:
    """Who is listening in this process, and how each is told that it is over."""

    def __init__(self) -> None:
        self._open: dict[UserId, dict[End, Caller]] = {}
        self._changed: set[UserId] = set()
        self._wake = Wake(HEAL_EVERY_S)
        self._tell: Callable[[UserId], object] | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self, sessions: Sessions, tell: Callable[[UserId], object]) -> None:
        """Begin to look; `tell` tells the other processes."""
        self._tell = tell
        self._looking = asyncio.create_task(self._look_for_ever(sessions))

    async def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def begin(self, caller: Caller, end: End) -> Callable[[], None]:
        """Call `end` once, when the caller's session ends; returns what takes that back."""
        self._open.setdefault(caller.user_id, {})[end] = caller
        # It may have ended since the caller was identified, before anybody here listened.
        self.look_at(caller.user_id)
        return lambda: self._forget(caller.user_id, end)

    def changed(self, user_id: UserId) -> None:
        """Sessions of this person ended, or have another role: look here, and tell the others."""
        self.look_at(user_id)
        if self._tell is not None:
            self._tell(user_id)

    def look_at(self, user_id: UserId) -> None:
        """Look at the sessions of this person soon."""
        if user_id in self._open:
            self._changed.add(user_id)
            self._wake.set()

    def _forget(self, user_id: UserId, end: End) -> None:
        theirs = self._open.get(user_id, {})
        theirs.pop(end, None)
        if not theirs:
            self._open.pop(user_id, None)

    async def _look_for_ever(self, sessions: Sessions) -> None:
        while True:
            all_of_them = await self._wake.wait()
            whose, self._changed = self._changed, set()
            if all_of_them:
                whose = set(self._open)
            try:
                await self._look(sessions, whose)
            except Exception as error:
                # The truth may be away for a while, and is asked again by then.
                why = None if is_away(error) else error
                log.warning("open sessions could not be read from MongoDB", exc_info=why)

    async def _look(self, sessions: Sessions, whose: Iterable[UserId]) -> None:
        # Streams that begin while this reads have asked for a look of their own.
        streams = [(u, end, c) for u in whose for end, c in self._open.get(u, {}).items()]
        if not streams:
            return
        roles = await sessions.roles_in([*{caller.session_id for _, _, caller in streams}])
        for user_id, end, caller in streams:
            if roles.get(caller.session_id) is not caller.role:
                self._forget(user_id, end)
                end()
