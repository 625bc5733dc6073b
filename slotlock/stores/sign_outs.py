"""Telling every process that somebody was signed out or got another role: Redis pub/sub, lossy.

One channel for all, which carries the person's id. It says whose sessions to look at, not what
became of them: that is told by MongoDB.
"""

import re
from collections.abc import Callable

from slotlock.domain.people import UserId
from slotlock.stores.listening import Listener
from slotlock.stores.redis import RedisLine
from slotlock.stores.redis_clients import Client

CHANNEL = "slotlock:signouts"
_USER_ID = re.compile(rb"[0-9a-f]{24}")


class SignOuts:
    """Tells other processes whose sessions changed, and hears what they tell."""

    def __init__(self, client: Client, line: RedisLine, heard: Callable[[UserId], object]) -> None:
        self._line = line
        self._heard = heard
        self._listener = Listener(client, self._hear, CHANNEL)

    def start(self) -> None:
        """Begin to listen."""
        self._listener.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self._listener.stop()

    def tell(self, user_id: UserId) -> None:
        """Tell every process, unawaited: whoever misses it looks by itself soon."""
        self._line.send("PUBLISH", CHANNEL, user_id)

    def _hear(self, _: str, data: bytes) -> None:
        if _USER_ID.fullmatch(data):
            self._heard(UserId(data.decode()))
