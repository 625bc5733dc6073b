"""Fair locks in Redis, granted in order of arrival.

The locks only order callers and limit how many work at once. Correctness rests on the version
check of each write to MongoDB, so a lock may be lost at any time.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from prometheus_client import Histogram

from slotlock.domain.booking.availability import Availability
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, Command, RedisUnavailableError
from slotlock.infrastructure.redis.keys import lock_keys, wakeup_channel
from slotlock.infrastructure.redis.locks.leases import (
    FencingTokens,
    InProcessLease,
    Lease,
    LeaseRenewer,
    RedisLease,
)
from slotlock.infrastructure.redis.locks.local import InProcessLocks, Wait
from slotlock.infrastructure.redis.locks.releases import PendingReleases
from slotlock.infrastructure.redis.locks.scripts import (
    ACQUIRE,
    INSTANCE_ID_CHARS,
    RELEASE,
    parse_lock,
    parse_wakeup,
)
from slotlock.infrastructure.redis.locks.waiters import Grant, LockWaiters
from slotlock.infrastructure.redis.slot_events import availability_message
from slotlock.infrastructure.redis.subscriber import RedisSubscriber

log = logging.getLogger("slotlock.redis")

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


def _ignore() -> None:
    pass


class _AcquiredLock(NamedTuple):
    fencing_token: int
    was_waiting: bool


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
        self._instance_id = secrets.token_hex(INSTANCE_ID_CHARS // 2)
        self._fencing_tokens = FencingTokens()
        self._renewer = LeaseRenewer(pipeline, ttl_ms)
        self._local_locks = InProcessLocks()
        self._pending_releases = PendingReleases()
        self._waiters = LockWaiters(
            pipeline, self._instance_id, self._fencing_tokens, self._on_granted
        )
        self._wakeup_subscriber = RedisSubscriber(
            pipeline.client, self._on_wakeup, wakeup_channel(self._instance_id)
        )

    async def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Subscribe to wake-ups and wait until that is done, at most this many seconds."""
        self._wakeup_subscriber.start()
        await self._wakeup_subscriber.wait_until_subscribed(
            0.0 if self.pipeline.is_unavailable else timeout_s
        )

    async def stop(self) -> None:
        """Unsubscribe, stop renewing leases, and wait for the releases that are under way."""
        await self._wakeup_subscriber.stop()
        self._waiters.stop()
        self._renewer.stop()
        await self.wait_for_releases()

    async def acquire(
        self, *names: str, wait_s: float = 0.0, on_wait: Callable[[], object] = _ignore
    ) -> Lease | None:
        """Acquire all locks or none. Returns None if that takes longer than `wait_s` seconds.

        `on_wait` is called as soon as a lock turns out to be held by another, and is waited for.

        Waiters are granted a lock in order of arrival, before any caller that does not wait. Locks
        are acquired in sorted order, so that no two callers wait for each other. While Redis is
        unavailable, the lease holds inside this process only.
        """
        requested_at = time.perf_counter()
        sorted_names = tuple(sorted(set(names)))
        wait = Wait(asyncio.get_running_loop().time() + wait_s, on_wait)
        try:
            return await self._acquire_in_redis(sorted_names, wait)
        except RedisUnavailableError:
            return await self._acquire_in_process(sorted_names, wait)
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - requested_at)

    async def _acquire_in_process(
        self, names: tuple[str, ...], wait: Wait
    ) -> InProcessLease | None:
        if not await self._local_locks.acquire(names, wait):
            return None
        return InProcessLease(names, self._fencing_tokens.issue())

    async def _acquire_in_redis(self, names: tuple[str, ...], wait: Wait) -> RedisLease | None:
        token = self._instance_id + secrets.token_hex(16)
        lost = asyncio.Event()
        acquired: list[str] = []
        fencing_token = 0
        try:
            for name in names:
                lock = await self._acquire_one(name, token, wait)
                if lock is None:
                    break
                acquired.append(name)
                fencing_token = max(fencing_token, lock.fencing_token)
                self._renewer.add(token, name, lost, was_waiting=lock.was_waiting)
        except BaseException:
            self._release_all(token, acquired)
            raise
        if len(acquired) < len(names) or lost.is_set():
            self._release_all(token, acquired)
            return None
        return RedisLease(names, token, fencing_token, lost)

    async def _acquire_one(self, name: str, token: str, wait: Wait) -> _AcquiredLock | None:
        """Acquire one lock. On any failure, the token is removed from Redis."""
        try:
            if wait.deadline > asyncio.get_running_loop().time():
                lock = await self._acquire_or_wait(name, token, wait)
            else:
                lock = await self._try_acquire(name, token, wait=False)
        except RedisUnavailableError as error:
            if error.sent:
                self._release_one(name, token)
            raise
        except BaseException:  # cancelled, perhaps after Redis granted the lock
            self._release_one(name, token)
            raise
        if lock is not None:
            self._fencing_tokens.observe(lock.fencing_token)
        return lock

    async def _acquire_or_wait(self, name: str, token: str, wait: Wait) -> _AcquiredLock | None:
        with self._waiters.pending_grant(name, token) as grant:
            lock = await self._try_acquire(name, token, wait=True)
            if lock is not None:
                return lock
            wait.on_wait()
            timer = asyncio.get_running_loop().call_at(wait.deadline, _time_out, grant)
            try:
                fencing_token = await grant
            finally:
                timer.cancel()
        if fencing_token is None:
            self._release_one(name, token)
            return None
        return _AcquiredLock(fencing_token, was_waiting=True)

    async def _try_acquire(self, name: str, token: str, *, wait: bool) -> _AcquiredLock | None:
        """Acquire a free lock, or join its queue if `wait` is set."""
        arguments = (token, self.ttl_ms, self._fencing_tokens.highest, int(wait))
        lock: bytes = await self.pipeline.send("EVAL", ACQUIRE, 3, *lock_keys(name), *arguments)
        holder, fencing_token = parse_lock(lock)
        if holder == token:
            return _AcquiredLock(fencing_token, was_waiting=False)
        self._waiters.on_lock(name, lock)
        return None

    async def release(self, lease: Lease, *changed_slots: Availability) -> None:
        """Release what is still held and publish these states in the same round trip.

        The commands are queued at once, before any later command of this process, and the replies
        are not awaited. A release that fails is counted and sent again after Redis recovers; the
        lock expires in any case. Only a caller with too many releases before it has to wait.
        """
        messages = [part for state in changed_slots for part in availability_message(state)]
        if isinstance(lease, RedisLease):
            self._release_all(lease.token, lease.names, messages)
        else:
            self._local_locks.release(lease.names)
            for pair in zip(messages[::2], messages[1::2], strict=True):
                self._pending_releases.add(self.pipeline.send("PUBLISH", *pair))
        await self._pending_releases.wait_for_room()

    async def wait_for_releases(self) -> None:
        """Wait until Redis has replied to every release, or failed to."""
        await self._pending_releases.drain()

    def _release_all(
        self, token: str, names: Sequence[str], messages: Sequence[str | bytes] = ()
    ) -> None:
        self._renewer.remove(token)
        for name in names:
            self._release_one(name, token, messages)
            messages = ()  # the first release publishes them

    def _release_one(self, name: str, token: str, messages: Sequence[str | bytes] = ()) -> None:
        """Release a lock or leave its queue, whichever applies when Redis runs the script."""
        command = ("EVAL", RELEASE, 3, *lock_keys(name), token, self._fencing_tokens.highest)
        reply: asyncio.Future[bytes | None] = self.pipeline.send(*command, *messages)
        reply.add_done_callback(partial(self._on_released, name, command))
        self._pending_releases.add(reply)

    def _on_released(
        self, name: str, command: Command, reply: asyncio.Future[bytes | None]
    ) -> None:
        if reply.exception() is None:
            self._on_granted(name, reply.result())
        else:
            self.pipeline.send_after_recovery(*command)

    def _on_wakeup(self, _channel: str, message: bytes) -> None:
        try:
            name, lock = parse_wakeup(message)
        except ValueError:
            log.warning("ignored an unknown wake-up message: %.200r", message)
            return
        self._on_granted(name, lock)

    def _on_granted(self, name: str, lock: bytes | None) -> None:
        if lock is None or self._waiters.on_lock(name, lock):
            return
        token, fencing_token = parse_lock(lock)
        self._fencing_tokens.observe(fencing_token)
        if token.startswith(self._instance_id) and token not in self._renewer:
            self._release_one(name, token)  # its waiter has left


def _time_out(grant: Grant) -> None:
    if not grant.done():
        grant.set_result(None)
