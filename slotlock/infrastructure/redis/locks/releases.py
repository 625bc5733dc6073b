"""Releases whose replies nobody awaits. They are counted, so that none is lost silently."""

import asyncio

from prometheus_client import Counter

from slotlock.infrastructure.redis.auto_pipeline import Reply

RELEASE_FAILURES = Counter(
    "slotlock_release_failures_total",
    "Releases and published states that Redis did not confirm",
)
# Under normal load there are a few. Beyond this number, a release waits for the earlier ones.
MAX_PENDING_RELEASES = 1_000


class PendingReleases:
    """The releases and published states that Redis has not confirmed yet."""

    def __init__(self) -> None:
        self._replies: set[asyncio.Future[Reply]] = set()

    def __len__(self) -> int:
        return len(self._replies)

    def add(self, reply: asyncio.Future[Reply]) -> None:
        """Count the reply as pending until it has arrived, and then as failed if it is an error."""
        self._replies.add(reply)
        reply.add_done_callback(self._on_reply)

    def _on_reply(self, reply: asyncio.Future[Reply]) -> None:
        self._replies.discard(reply)
        if reply.exception() is not None:
            RELEASE_FAILURES.inc()

    async def wait_for_room(self) -> None:
        """Wait for replies while there are too many pending ones."""
        while len(self._replies) > MAX_PENDING_RELEASES:
            await asyncio.wait(self._replies, return_when=asyncio.FIRST_COMPLETED)

    async def drain(self) -> None:
        """Wait until every reply has arrived, which the timeout of the pipeline limits."""
        while self._replies:
            await asyncio.wait(self._replies)
