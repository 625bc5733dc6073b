"""One process of all reads the change stream and sends digests of it to the others, over Redis.

Each reply of the stream is one digest, also one without changes. The digests of a stream have
consecutive numbers. If a number is missing, or another stream begins, anything may have changed;
and after an election, what was read shortly before may be older than the stream. A script in Redis
renews the lease of the reader and publishes its digest, or rejects both.

A process to which no digest comes reads a stream itself: after the death of the reader, the first
one takes the lease and the others receive its digests in time. Without Redis, every process does.
A process that receives digests again stops its own stream only then, and compares everything once.
"""

import asyncio
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any

import orjson
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.change_stream.change_feed import ChangeFeed, OnChanges, OnGap
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import change_digest_channel, change_reader_key
from slotlock.infrastructure.redis.slot_events import SlotEventBus

# The reader sends a digest at least every half second. Its lease runs out before the others open
# streams, so that one of them gets it.
LEASE_MS = 1_300
SILENCE_S = 1.5
# A process with its first watcher may find no reader at all.
FIRST_DIGEST_S = 1.0
# The processes open streams, and compare what they watch, at different times.
MAX_JITTER_S = 0.3
RELEASED_LEASE_MS = 1
# The fields of a batch that later versions appended.
ADDED_FIELDS = 3
NO_CHANGES = ChangeBatch({}, frozenset(), frozenset())

# KEYS: the reader. ARGV: the id of the sender, the time to live, the channel, the digest.
_PUBLISH = """
local reader = redis.call('get', KEYS[1])
if reader and reader ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('publish', ARGV[3], ARGV[4])
return 1
"""


@value_object
class ChangeDigest:
    """What one reply of a change stream contains. The stream ends with the last digest."""

    reader_id: str
    stream_id: str
    number: int
    is_last: bool
    changes: ChangeBatch

    def to_message(self) -> bytes:
        """Encode the digest."""
        changes = self.changes
        lists = (list(changes.user_ids), list(changes.session_ids))
        head = (self.reader_id, self.stream_id, self.number, self.is_last)
        added = (changes.deleted_slot_ids, changes.listed_slot_ids, changes.campaign_ids)
        return orjson.dumps((*head, changes.slot_versions, *lists, *map(list, added)))


def to_digest(message: bytes) -> ChangeDigest:
    """Decode a digest. Raises: ValueError, TypeError."""
    # A newer version appends its fields. Those that are missing are from an older version.
    reader_id, stream_id, number, is_last, versions, user_ids, session_ids, *more = orjson.loads(
        message
    )
    slot_versions: dict[SlotId, int] = dict(versions)
    users: frozenset[UserId] = frozenset(user_ids)
    added = map(frozenset, more[:ADDED_FIELDS])
    changes = ChangeBatch(slot_versions, users, frozenset(session_ids), *added)
    return ChangeDigest(reader_id, stream_id, number, is_last, changes)


class SharedChangeFeed:
    """Passes on changes while somebody watches, from digests or from a stream of this process."""

    def __init__(self, feed: ChangeFeed, pipeline: AutoPipeline) -> None:
        self._feed = feed
        self._pipeline = pipeline
        self._slot_events: SlotEventBus | None = None
        self._channel = self._reader_key = ""
        self._listeners: list[tuple[OnChanges, OnGap]] = []
        self._watcher_count = 0
        # As a reader. The lease ends at a time of the monotonic clock.
        self._id = secrets.token_urlsafe(12)
        self._is_reading = False
        self._lease_until = 0.0
        self._stream_id, self._number = "", 0
        # As a receiver: the stream, the number of the digest that comes next, and the election of
        # the primary from which this process reads. The former one may have been behind the stream.
        self._next: tuple[str, int, ObjectId | None] | None = None
        self._silence: asyncio.TimerHandle | None = None
        self._comparison: asyncio.TimerHandle | None = None
        self._subscribing: set[asyncio.Task[None]] = set()

    async def start(self, slot_events: SlotEventBus) -> None:
        """Share the stream from now on. Without this, the process reads its own.

        Raises:
            PyMongoError: MongoDB is unavailable.
        """
        # Channels are common to all databases of a Redis, and so to all deployments.
        database_id = await self._feed.stream.database_id()
        if database_id is not None:
            self._channel = change_digest_channel(database_id)
            self._reader_key = change_reader_key(database_id)
            self._slot_events = slot_events

    def listen(self, on_changes: OnChanges, on_gap: OnGap) -> None:
        """Pass on the changes; `on_gap` says that anything may have changed."""
        self._listeners.append((on_changes, on_gap))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Pass on changes until the last watcher leaves."""
        self.add_watcher()
        try:
            yield
        finally:
            self.remove_watcher()

    def add_watcher(self) -> None:
        """Pass on changes until all watchers are removed."""
        self._watcher_count += 1
        if self._watcher_count > 1:
            return
        if self._slot_events is None:
            self._start_reading()
        else:
            self._subscribe(is_watching=True)
            self._read_after(FIRST_DIGEST_S)

    def remove_watcher(self) -> None:
        """Remove a watcher that was added."""
        self._watcher_count -= 1
        if self._watcher_count == 0:
            self._end()

    async def stop(self) -> None:
        """Pass on nothing more. Another process reads the stream, if this one did."""
        if self._watcher_count > 0:
            self._watcher_count = 0
            self._end()
        await self._feed.stop()
        if self._subscribing:
            await asyncio.wait(self._subscribing)

    def _end(self) -> None:
        for timer in (self._silence, self._comparison):
            if timer is not None:
                timer.cancel()
        self._silence = self._comparison = self._next = None
        self._stop_reading()
        self._subscribe(is_watching=False)

    def _subscribe(self, *, is_watching: bool) -> None:
        if self._slot_events is None:
            return
        change = (
            self._slot_events.subscribe_digests(self._channel, self.on_digest)
            if is_watching
            else self._slot_events.unsubscribe_digests(self._channel)
        )
        task = asyncio.create_task(change)
        self._subscribing.add(task)
        task.add_done_callback(self._subscribing.discard)

    # Receiving digests

    def on_digest(self, message: bytes) -> None:
        """Pass on the digest of another process. Raises: ValueError, TypeError."""
        digest = to_digest(message)
        is_own = digest.reader_id == self._id
        if is_own or self._has_lease() or self._watcher_count <= 0:
            return
        if digest.is_last:
            if not self._is_reading:
                self._read_after(0)
            return
        self._stop_reading()
        self._read_after(SILENCE_S)
        stream_id, number, election_id = (
            digest.stream_id,
            digest.number,
            self._feed.stream.election_id(),
        )
        is_next = self._next == (stream_id, number, election_id)
        self._next = (stream_id, number + 1, election_id)
        self._pass_on(digest.changes)
        if not is_next:
            self._compare_soon()

    def _read_after(self, silence_s: float) -> None:
        """Start to read a stream after so many seconds without a digest."""
        if self._silence is not None:
            self._silence.cancel()
        delay_s = silence_s + random.uniform(0, MAX_JITTER_S)  # noqa: S311 - no secret
        self._silence = asyncio.get_running_loop().call_later(delay_s, self._start_reading)

    def _compare_soon(self) -> None:
        if self._comparison is None:
            delay_s = random.uniform(0, MAX_JITTER_S)  # noqa: S311 - no secret
            self._comparison = asyncio.get_running_loop().call_later(delay_s, self._compare)

    def _compare(self) -> None:
        self._comparison = None
        for _, on_gap in self._listeners:
            on_gap()

    def _pass_on(self, changes: ChangeBatch) -> None:
        if changes:
            for on_changes, _ in self._listeners:
                on_changes(changes)

    # Reading a stream

    def _start_reading(self) -> None:
        self._silence = self._next = None
        self._is_reading = True
        self._begin_numbers()
        self._feed.start(self._on_reply, self._on_stream_start)

    def _stop_reading(self) -> None:
        if not self._is_reading:
            return
        self._is_reading = False
        self._feed.end()
        if self._has_lease():
            self._publish(NO_CHANGES, is_last=True)
            self._lease_until = 0.0

    def _on_stream_start(self) -> None:
        self._compare()
        if self._is_reading:
            self._begin_numbers()
            self._publish(NO_CHANGES)

    def _on_reply(self, changes: ChangeBatch) -> None:
        # A stream ends with the reply after the last watcher.
        self._pass_on(changes)
        if self._is_reading:
            self._publish(changes)

    def _begin_numbers(self) -> None:
        self._stream_id, self._number = secrets.token_urlsafe(12), 0

    def _has_lease(self) -> bool:
        return monotonic() < self._lease_until

    def _publish(self, changes: ChangeBatch, *, is_last: bool = False) -> None:
        """Publish a digest, without waiting. If Redis rejects it, another process is the reader."""
        if self._slot_events is None:
            return
        digest = ChangeDigest(self._id, self._stream_id, self._number, is_last, changes)
        # A digest that is not published leaves a gap.
        self._number += 1
        lease_ms = RELEASED_LEASE_MS if is_last else LEASE_MS
        lease_until = monotonic() + lease_ms / 1000
        arguments = (self._id, lease_ms, self._channel, digest.to_message())
        reply = self._pipeline.run_script(_PUBLISH, [self._reader_key], *arguments)
        reply.add_done_callback(partial(self._on_published, lease_until))

    def _on_published(self, lease_until: float, reply: asyncio.Future[Any]) -> None:
        is_published = not reply.cancelled() and reply.exception() is None and reply.result() == 1
        self._lease_until = lease_until if is_published and self._is_reading else 0.0
