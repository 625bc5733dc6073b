"""Telling every process that somebody was signed out or got another role: Redis pub/sub, lossy.

One channel for all, which carries the person's id. It says whose sessions to look at, not what
became of them: that is told by MongoDB.
"""

import re
from collections.abc import Callable

from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.subscriber import RedisSubscriber

SESSION_EVENTS_CHANNEL = "slotlock:signouts"
_USER_ID = re.compile(rb"[0-9a-f]{24}")


class SessionEventBus:
    """Tells other processes whose sessions changed, and hears what they tell."""

    def __init__(
        self,
        client: RedisClient,
        pipeline: AutoPipeline,
        on_session_changed: Callable[[UserId], object],
    ) -> None:
        self._pipeline = pipeline
        self._on_session_changed = on_session_changed
        self._subscriber = RedisSubscriber(client, self._dispatch, SESSION_EVENTS_CHANNEL)

    def start(self) -> None:
        """Begin to listen."""
        self._subscriber.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._subscriber.stop()

    def publish(self, user_id: UserId) -> None:
        """Tell every process, unawaited: whoever misses it looks by itself soon."""
        self._pipeline.send("PUBLISH", SESSION_EVENTS_CHANNEL, user_id)

    def _dispatch(self, _: str, data: bytes) -> None:
        if _USER_ID.fullmatch(data):
            self._on_session_changed(UserId(data.decode()))
