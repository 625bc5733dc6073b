"""The open streams of this process: each ends with its session, or when its user's role changes.

A notification, local or over Redis, only names the user whose sessions to check; MongoDB says which
are open. If a notification is lost, the change stream of MongoDB names the session. All sessions
are checked when a stream begins, because changes before it are unknown.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.tasks import cancel_and_wait

if TYPE_CHECKING:
    from slotlock.infrastructure.shared_change_feed import SharedChangeFeed  # imports Redis

log = logging.getLogger("slotlock.session_streams")

# After a failure, all sessions are checked again.
RETRY_INTERVAL_S = 2.0

OnSessionEnd = Callable[[], object]


class SessionStreams:
    """The open streams by user, each with a callback that ends it."""

    def __init__(self) -> None:
        self._open_streams: dict[UserId, dict[OnSessionEnd, Caller]] = {}
        self._session_users: dict[str, UserId] = {}
        self._changed_users: set[UserId] = set()
        self._is_any_changed = False
        self._found_changes = asyncio.Event()
        self._publish_change: Callable[[UserId], object] | None = None
        self._change_feed: SharedChangeFeed | None = None
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        sessions: SessionRepository,
        publish_change: Callable[[UserId], object],
        change_feed: "SharedChangeFeed",
    ) -> None:
        """Start to check sessions; `publish_change` notifies the other processes."""
        self._publish_change = publish_change
        self._change_feed = change_feed
        change_feed.listen(self._on_changes, self.recheck_all)
        self._task = asyncio.create_task(self._run(sessions))

    async def stop(self) -> None:
        """Stop to check sessions."""
        await cancel_and_wait(self._task)

    def register(self, caller: Caller, on_end: OnSessionEnd) -> Callable[[], None]:
        """Call `on_end` once, when the caller's session ends. Return a function to unregister."""
        if not self._open_streams and self._change_feed is not None:
            self._change_feed.add_watcher()
        self._open_streams.setdefault(caller.user_id, {})[on_end] = caller
        self._session_users[caller.session_id] = caller.user_id
        # The session may have ended between authentication and this registration.
        self.recheck(caller.user_id)
        return lambda: self._unregister(caller.user_id, on_end)

    def session_changed(self, user_id: UserId) -> None:
        """Check the user's sessions, here and in all other processes."""
        self.recheck(user_id)
        if self._publish_change is not None:
            self._publish_change(user_id)

    def recheck(self, user_id: UserId) -> None:
        """Check the user's sessions soon, in this process."""
        if user_id in self._open_streams:
            self._changed_users.add(user_id)
            self._found_changes.set()

    def recheck_all(self) -> None:
        """Check all sessions of the streams of this process soon."""
        self._is_any_changed = True
        self._found_changes.set()

    def _on_changes(self, changes: ChangeBatch) -> None:
        for session_id in changes.session_ids:
            user_id = self._session_users.get(session_id)
            if user_id is not None:
                self.recheck(user_id)

    def _unregister(self, user_id: UserId, on_end: OnSessionEnd) -> None:
        streams = self._open_streams.get(user_id, {})
        caller = streams.pop(on_end, None)
        if caller is None:  # it has ended already
            return
        if all(other.session_id != caller.session_id for other in streams.values()):
            del self._session_users[caller.session_id]
        if not streams:
            del self._open_streams[user_id]
        if not self._open_streams and self._change_feed is not None:
            self._change_feed.remove_watcher()

    async def _run(self, sessions: SessionRepository) -> None:
        while True:
            await self._found_changes.wait()
            self._found_changes.clear()
            user_ids, self._changed_users = self._changed_users, set()
            if self._is_any_changed:
                self._is_any_changed, user_ids = False, set(self._open_streams)
            try:
                await self._recheck_users(sessions, user_ids)
            except Exception as error:
                unexpected_error = None if is_unavailable(error) else error
                log.warning("could not read open sessions from MongoDB", exc_info=unexpected_error)
                self.recheck_all()
                await asyncio.sleep(RETRY_INTERVAL_S)

    async def _recheck_users(self, sessions: SessionRepository, user_ids: Iterable[UserId]) -> None:
        # `register` requests another check for streams that open while this one reads.
        streams = [
            (user_id, on_end, caller)
            for user_id in user_ids
            for on_end, caller in self._open_streams.get(user_id, {}).items()
        ]
        if not streams:
            return
        roles = await sessions.find_roles([*{caller.session_id for _, _, caller in streams}])
        for user_id, on_end, caller in streams:
            if roles.get(caller.session_id) is not caller.role:
                self._unregister(user_id, on_end)
                on_end()
