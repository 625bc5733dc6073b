"""Publishes changes of a user's sessions or role to every process, by lossy pub/sub.

A message carries only the user's id. Each process then reads the sessions from MongoDB.
"""

import re
from collections.abc import Callable

from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient
from slotlock.infrastructure.redis.keys import SESSION_EVENTS_CHANNEL
from slotlock.infrastructure.redis.subscriber import RedisSubscriber

_USER_ID = re.compile(rb"[0-9a-f]{24}")


class SessionEventBus:
    """Publishes changes of sessions and passes those of all processes to a callback."""

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
        """Start to receive messages."""
        self._subscriber.start()

    async def stop(self) -> None:
        """Stop receiving messages."""
        await self._subscriber.stop()

    def publish(self, user_id: UserId) -> None:
        """Publish a change, without waiting. Processes that miss it check sessions regularly."""
        self._pipeline.send("PUBLISH", SESSION_EVENTS_CHANNEL, user_id)

    def _dispatch(self, _channel: str, data: bytes) -> None:
        if _USER_ID.fullmatch(data):
            self._on_session_changed(UserId(data.decode()))
