"""The changes that MongoDB reports, passed on in case a message was lost.

The process reads one change stream. All that is watched is compared when a stream begins, also
after an interruption. A stream that continued after its last change would be wrong after an
election: the new primary may know later than its predecessor that a majority has a change, and a
watcher that comes meanwhile would read the state before it.
"""

import asyncio
import logging
from collections.abc import Callable

from prometheus_client import Counter

from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch, ChangeStream
from slotlock.infrastructure.mongo.client import is_unavailable, outage_reason
from slotlock.infrastructure.tasks import cancel_and_wait

log = logging.getLogger("slotlock.changes")

# Under load, so many changes are one reply, and of those of one slot only the latest counts.
PAUSE_S = 0.1
MIN_BACKOFF_S = 0.1
MAX_BACKOFF_S = 1.0

OPENED = Counter(
    "slotlock_change_stream_opened_total",
    "Change streams that were opened, by a first watcher or after an interruption",
)

OnChanges = Callable[[ChangeBatch], object]
OnGap = Callable[[], object]


class ChangeFeed:
    """Reads the change stream while it is wanted."""

    def __init__(self, stream: ChangeStream) -> None:
        self.stream = stream
        self._is_wanted = False
        self._task: asyncio.Task[None] | None = None

    def start(self, on_changes: OnChanges, on_gap: OnGap) -> None:
        """Pass on each reply, also an empty one; `on_gap` says that anything may have changed."""
        self._is_wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(on_changes, on_gap))

    def end(self) -> None:
        """Stop reading after the next reply, unless `start` comes first."""
        self._is_wanted = False

    async def stop(self) -> None:
        """Stop reading at once."""
        self._is_wanted = False
        await cancel_and_wait(self._task)

    async def _run(self, on_changes: OnChanges, on_gap: OnGap) -> None:
        while self._is_wanted:
            try:
                await self._read_while_wanted(on_changes, on_gap)
            finally:
                await self.stream.close()

    async def _read_while_wanted(self, on_changes: OnChanges, on_gap: OnGap) -> None:
        backoff_s = MIN_BACKOFF_S
        while self._is_wanted:
            try:
                await self.stream.open()
                OPENED.inc()
                on_gap()
                while self._is_wanted:
                    changes = await self.stream.next_changes()
                    backoff_s = MIN_BACKOFF_S
                    on_changes(changes)
                    if changes:
                        await asyncio.sleep(PAUSE_S)
            except Exception as error:  # the changes are needed again
                log.warning(
                    "the change stream was interrupted: %s",
                    outage_reason(error),
                    exc_info=None if is_unavailable(error) else error,
                )
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)
