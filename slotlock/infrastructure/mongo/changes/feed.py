"""The changes that MongoDB reports, passed to those who listen in case a message was lost.

The process reads one change stream, from its first watcher to its last. The listeners compare all
that they watch when a stream begins, also after an interruption. A stream that continued after its
last change would be wrong after an election: the new primary may know later than its predecessor
that a majority has a change, and a watcher that comes meanwhile would read the state before it.
"""

import asyncio
import logging
from collections.abc import Callable

from bson import ObjectId
from prometheus_client import Counter
from pymongo.errors import CursorNotFound

from slotlock.infrastructure.mongo.changes.stream import Changes, ChangeStream
from slotlock.infrastructure.mongo.client import is_unavailable
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

OnChanges = Callable[[Changes], object]
OnGap = Callable[[], object]


class ChangeFeed:
    """Reads the change stream while somebody watches."""

    def __init__(self, stream: ChangeStream) -> None:
        self._stream = stream
        self._listeners: list[tuple[OnChanges, OnGap]] = []
        self._watcher_count = 0
        self._task: asyncio.Task[None] | None = None

    def listen(self, on_changes: OnChanges, on_gap: OnGap) -> None:
        """Pass on each reply, also an empty one; `on_gap` says that anything may have changed."""
        self._listeners.append((on_changes, on_gap))

    async def database_id(self) -> str | None:
        """Return what distinguishes the database of the stream from all others."""
        return await self._stream.database_id()

    def election_id(self) -> ObjectId | None:
        """Return the id of the election of the primary from which this process reads, if known."""
        return self._stream.election_id()

    def add_watcher(self) -> None:
        """Read the stream until all watchers are removed."""
        self._watcher_count += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    def remove_watcher(self) -> None:
        """Remove a watcher that was added."""
        self._watcher_count -= 1

    async def stop(self) -> None:
        """Stop reading."""
        self._watcher_count = 0
        await cancel_and_wait(self._task)

    async def _run(self) -> None:
        while self._watcher_count:
            try:
                await self._read_while_watched()
            finally:
                await self._stream.close()

    async def _read_while_watched(self) -> None:
        backoff_s = MIN_BACKOFF_S
        while self._watcher_count:
            try:
                await self._stream.open()
                OPENED.inc()
                for _, on_gap in self._listeners:
                    on_gap()
                while self._watcher_count:
                    changes = await self._stream.next_changes()
                    backoff_s = MIN_BACKOFF_S
                    for on_changes, _ in self._listeners:
                        on_changes(changes)
                    if changes:
                        await asyncio.sleep(PAUSE_S)
            except Exception as error:  # the listeners need it again
                log.warning(
                    "the change stream was interrupted: %s",
                    error,
                    exc_info=None if _is_expected(error) else error,
                )
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, MAX_BACKOFF_S)


def _is_expected(error: Exception) -> bool:
    """Return whether MongoDB was unavailable, or has lost the cursor by a restart."""
    return is_unavailable(error) or isinstance(error, CursorNotFound)
