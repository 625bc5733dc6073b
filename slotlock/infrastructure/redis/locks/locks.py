"""Fair locks, granted in order of arrival: those of Redis or, without it, those of this process.

The locks only order callers and limit how many work at once. Correctness rests on the version
check of each write to MongoDB, so a lock may be lost at any time.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from time import monotonic

from prometheus_client import Histogram

from slotlock.domain.booking.availability import Availability
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_leases import (
    FencingTokens,
    InProcessLockLease,
    LockLease,
    RedisLockLease,
    Wait,
)
from slotlock.infrastructure.redis.locks.lock_scripts import LockRequest
from slotlock.infrastructure.redis.locks.redis_locks import RedisLocks
from slotlock.infrastructure.redis.slot_events import availability_message
from slotlock.infrastructure.telemetry import tracing

LOCK_TTL_MS = 10_000
# How long `start` waits for the wake-up channel. Without it, grants are only noticed later.
START_TIMEOUT_S = 1.0

LOCK_WAIT = Histogram(
    "slotlock_lock_wait_seconds",
    "Time from requesting the locks of one or more slots to the result, acquired or not",
    buckets=(
        *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
        *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0),
    ),
)
LocalGrant = asyncio.Future[bool]


def _ignore() -> None:
    pass


class InProcessLocks:
    """Grants locks of one process in order of arrival, while Redis is unavailable."""

    def __init__(self) -> None:
        # The waiters of each lock that is held, the first one first.
        self._waiters: dict[str, deque[LocalGrant]] = {}

    async def acquire(self, names: tuple[str, ...], wait: Wait) -> bool:
        """Acquire all locks one after the other, or none, by the deadline."""
        acquired: list[str] = []
        try:
            for name in names:
                if not await self._acquire_one(name, wait):
                    break
                acquired.append(name)
        finally:
            if len(acquired) < len(names):
                self.release(tuple(acquired))
        return len(acquired) == len(names)

    async def _acquire_one(self, name: str, wait: Wait) -> bool:
        if name not in self._waiters:
            self._waiters[name] = deque()
            return True
        loop = asyncio.get_running_loop()
        if wait.deadline <= loop.time():
            return False
        wait.on_wait()
        grant: LocalGrant = loop.create_future()
        self._waiters[name].append(grant)
        timer = loop.call_at(wait.deadline, _time_out, grant)
        try:
            return await grant
        except asyncio.CancelledError:
            # The lock may have been granted in the same round of the event loop.
            if not grant.cancelled() and grant.result():
                self.release((name,))
            raise
        finally:
            timer.cancel()

    def release(self, names: tuple[str, ...]) -> None:
        """Grant each lock to its first waiter that has not left."""
        for name in names:
            waiters = self._waiters.get(name, deque())
            while waiters and waiters[0].done():
                waiters.popleft()
            if waiters:
                waiters.popleft().set_result(True)
            else:
                self._waiters.pop(name, None)


class Locks:
    """All locks, as one instance sees them: a process with its waiters.

    The name of a lock is the id of a slot, or one that `keys` makes.
    """

    def __init__(
        self, pipeline: AutoPipeline, ttl_ms: int = LOCK_TTL_MS, *, record_metrics: bool = True
    ) -> None:
        self.pipeline = pipeline
        self.ttl_ms = ttl_ms
        self._record_metrics = record_metrics
        self._fencing_tokens = FencingTokens()
        self._redis_locks = RedisLocks(pipeline, ttl_ms, self._fencing_tokens)
        self._local_locks = InProcessLocks()
        # Released in this round of the event loop.
        self._released: list[LockLease] = []

    async def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Subscribe to wake-ups and wait until that is done, at most this many seconds."""
        await self._redis_locks.start(timeout_s)

    async def stop(self) -> None:
        """Unsubscribe, stop renewing leases, and wait for the releases that are under way."""
        self._release_together()
        await self._redis_locks.stop()

    async def acquire(
        self,
        *names: str,
        wait_s: float = 0.0,
        arrival: float | None = None,
        on_wait: Callable[[], object] = _ignore,
        give_way_s: float = 0.0,
    ) -> LockLease | None:
        """Acquire all locks or none. Returns None if that takes longer than `wait_s` seconds.

        `on_wait` is called as soon as a lock turns out to be held by another, and is waited for.
        `arrival` is when the caller came on the monotonic clock; by default it is now. Waiters who
        came at most `give_way_s` seconds later go first if they wait already.

        Waiters are granted a lock in order of arrival, before any caller that does not wait. Locks
        are acquired in sorted order, so that no two callers wait for each other. While Redis is
        unavailable, the lease holds inside this process only.
        """
        requested_at = time.perf_counter()
        sorted_names = tuple(sorted(set(names)))
        now = monotonic()
        wait = Wait(now if arrival is None else arrival, now + wait_s, on_wait, give_way_s)
        try:
            with tracing.span("slotlock.lock"):
                return await self._redis_locks.acquire(sorted_names, wait)
        except RedisUnavailableError:
            return await self._acquire_in_process(sorted_names, wait)
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - requested_at)

    async def acquire_each(self, names: Sequence[str]) -> list[LockLease | None]:
        """Acquire each of these locks in one round trip. Returns None for each that is not free.

        While Redis is unavailable, the leases hold inside this process only.
        """
        requested_at = time.perf_counter()
        try:
            with tracing.span("slotlock.lock"):
                return list(await self._redis_locks.acquire_each(names))
        except RedisUnavailableError:
            now = monotonic()
            wait = Wait(now, now, _ignore)
            return [await self._acquire_in_process((name,), wait) for name in names]
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - requested_at)

    async def _acquire_in_process(
        self, names: tuple[str, ...], wait: Wait
    ) -> InProcessLockLease | None:
        if not await self._local_locks.acquire(names, wait):
            return None
        return InProcessLockLease(names, self._fencing_tokens.issue())

    async def is_held(self, name: str) -> bool:
        """Return whether Redis has granted this lock. Raises RedisUnavailableError."""
        return bool(await self.pipeline.send("EXISTS", lock_keys(name)[0]))

    async def release(self, lease: LockLease, *changed_slots: Availability) -> None:
        """Release one lease and publish these states in the same round trip: see `release_each`."""
        await self.release_each([(lease, changed_slots)])

    async def release_each(
        self, releases: Sequence[tuple[LockLease, Sequence[Availability]]]
    ) -> None:
        """Release what is still held and publish the changed slots in the same round trip.

        The commands are queued at once, before any later command of this process, and the replies
        are not awaited. A release that fails is counted and sent again after Redis recovers; the
        lock expires in any case. Only a caller with too many releases before it has to wait.
        """
        with tracing.span("slotlock.publish"):
            self._send_releases(releases)
            await self._redis_locks.pending_releases.wait_for_room()

    def release_soon(self, lease: LockLease) -> None:
        """Release a lease with the others of this round of the event loop: see `release_each`."""
        if not self._released:
            asyncio.get_running_loop().call_soon(self._release_together)
        self._released.append(lease)

    def _release_together(self) -> None:
        released, self._released = self._released, []
        self._send_releases([(lease, ()) for lease in released])

    def _send_releases(self, releases: Sequence[tuple[LockLease, Sequence[Availability]]]) -> None:
        held: list[LockRequest] = []
        messages: list[str | bytes] = []
        for lease, changed_slots in releases:
            parts: list[str | bytes] = []
            for state in changed_slots:
                parts += availability_message(state)
            if isinstance(lease, RedisLockLease):
                held += map(LockRequest, lease.names, repeat(lease.token))
                messages += parts
            else:
                self._local_locks.release(lease.names)
                for pair in zip(parts[::2], parts[1::2], strict=True):
                    self._redis_locks.publish(*pair)
        self._redis_locks.release(held, messages)

    async def wait_for_releases(self) -> None:
        """Wait until Redis has replied to every release, or failed to."""
        self._release_together()
        await self._redis_locks.pending_releases.drain()


def _time_out(grant: LocalGrant) -> None:
    if not grant.done():
        grant.set_result(False)
