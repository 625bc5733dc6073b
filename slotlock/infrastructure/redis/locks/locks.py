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

from prometheus_client import Histogram

from slotlock.domain.booking.availability import Availability
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, Command, RedisUnavailableError
from slotlock.infrastructure.redis.keys import wakeup_channel
from slotlock.infrastructure.redis.locks.leases import (
    FencingTokens,
    InProcessLease,
    Lease,
    LeaseRenewer,
    RedisLease,
)
from slotlock.infrastructure.redis.locks.local import InProcessLocks, Wait
from slotlock.infrastructure.redis.locks.releases import PendingReleases
from slotlock.infrastructure.redis.locks.requests import (
    AcquiredLock,
    LockRequest,
    parts_per_script,
    script_command,
)
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
        self,
        *names: str,
        wait_s: float = 0.0,
        waited_s: float = 0.0,
        on_wait: Callable[[], object] = _ignore,
    ) -> Lease | None:
        """Acquire all locks or none. Returns None if that takes longer than `wait_s` seconds.

        `on_wait` is called as soon as a lock turns out to be held by another, and is waited for.
        A caller who has waited for `waited_s` seconds before comes before those who came since.

        Waiters are granted a lock in order of arrival, before any caller that does not wait. Locks
        are acquired in sorted order, so that no two callers wait for each other. While Redis is
        unavailable, the lease holds inside this process only.
        """
        requested_at = time.perf_counter()
        sorted_names = tuple(sorted(set(names)))
        wait = Wait(asyncio.get_running_loop().time() + wait_s, on_wait, waited_s)
        try:
            return await self._acquire_in_redis(sorted_names, wait)
        except RedisUnavailableError:
            return await self._acquire_in_process(sorted_names, wait)
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - requested_at)

    async def acquire_each(self, names: Sequence[str]) -> list[Lease | None]:
        """Acquire each of these locks in one round trip. Returns None for each that is not free.

        While Redis is unavailable, the leases hold inside this process only.
        """
        requested_at = time.perf_counter()
        try:
            return list(await self._acquire_each_in_redis(names))
        except RedisUnavailableError:
            now = Wait(asyncio.get_running_loop().time(), _ignore)
            return [await self._acquire_in_process((name,), now) for name in names]
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - requested_at)

    async def _acquire_each_in_redis(self, names: Sequence[str]) -> list[RedisLease | None]:
        requested = [LockRequest(name, self._new_token()) for name in names]
        locks = await self._send_acquire(requested)
        return [
            self._to_lease(request, lock) for request, lock in zip(requested, locks, strict=True)
        ]

    async def _send_acquire(self, requested: Sequence[LockRequest]) -> list[AcquiredLock | None]:
        """Acquire the locks that are free. On any failure, the tokens are removed from Redis."""
        try:
            return await self._try_acquire(requested)
        except RedisUnavailableError as error:
            if error.sent:
                self._release_all(requested)
            raise
        except BaseException:  # cancelled, perhaps after Redis granted the locks
            self._release_all(requested)
            raise

    def _to_lease(self, request: LockRequest, lock: AcquiredLock | None) -> RedisLease | None:
        if lock is None:
            return None
        lease = RedisLease((request.name,), request.token, lock.fencing_token)
        self._renewer.add(request.token, request.name, lease.lost, was_waiting=False)
        return lease

    async def _acquire_in_process(
        self, names: tuple[str, ...], wait: Wait
    ) -> InProcessLease | None:
        if not await self._local_locks.acquire(names, wait):
            return None
        return InProcessLease(names, self._fencing_tokens.issue())

    async def _acquire_in_redis(self, names: tuple[str, ...], wait: Wait) -> RedisLease | None:
        token = self._new_token()
        lost = asyncio.Event()
        acquired: list[str] = []
        fencing_token = 0
        next_arrival = None
        try:
            for name in names:
                lock = await self._acquire_one(name, token, wait)
                if lock is None:
                    break
                acquired.append(name)
                fencing_token = max(fencing_token, lock.fencing_token)
                if lock.next_waited_s is not None and len(names) == 1:
                    next_arrival = asyncio.get_running_loop().time() - lock.next_waited_s
                self._renewer.add(token, name, lost, was_waiting=lock.was_waiting)
        except BaseException:
            self._release_all([LockRequest(name, token) for name in acquired])
            raise
        if len(acquired) < len(names) or lost.is_set():
            self._release_all([LockRequest(name, token) for name in acquired])
            return None
        return RedisLease(names, token, fencing_token, lost, next_arrival)

    async def _acquire_one(self, name: str, token: str, wait: Wait) -> AcquiredLock | None:
        """Acquire one lock. On any failure, the token is removed from Redis."""
        request = LockRequest(name, token)
        if wait.deadline <= asyncio.get_running_loop().time():
            return (await self._send_acquire([request]))[0]
        try:
            return await self._acquire_or_wait(request, wait)
        except RedisUnavailableError as error:
            if error.sent:
                self._release_all([request])
            raise
        except BaseException:  # cancelled, perhaps after Redis granted the lock
            self._release_all([request])
            raise

    async def _acquire_or_wait(self, request: LockRequest, wait: Wait) -> AcquiredLock | None:
        with self._waiters.pending_grant(request.name, request.token) as grant:
            (lock,) = await self._try_acquire([request], wait.waited_s)
            if lock is not None:
                return lock
            wait.on_wait()
            timer = asyncio.get_running_loop().call_at(wait.deadline, _time_out, grant)
            try:
                granted = await grant
            finally:
                timer.cancel()
        if granted is None:
            self._release_all([request])
            return None
        self._fencing_tokens.observe(granted.fencing_token)
        return AcquiredLock(granted.fencing_token, True, granted.next_waited_s)

    async def _try_acquire(
        self, requested: Sequence[LockRequest], waited_s: float | None = None
    ) -> list[AcquiredLock | None]:
        """Acquire the locks that are free, and join the queues of the others.

        `waited_s` is for how many seconds the caller has waited. None joins no queue.
        """
        waited_us = -1 if waited_s is None else int(waited_s * 1e6)
        arguments = (self._instance_id, self.ttl_ms, self._fencing_tokens.highest, waited_us)
        replies = [
            self.pipeline.send(*script_command(ACQUIRE, part, arguments))
            for part in self._parts(requested)
        ]
        locks = [lock for reply in replies for lock in await reply]
        return [self._parse_acquired(*each) for each in zip(requested, locks, strict=True)]

    def _parse_acquired(self, request: LockRequest, lock: bytes) -> AcquiredLock | None:
        value = parse_lock(lock)
        if value.token == request.token:
            self._fencing_tokens.observe(value.fencing_token)
            return AcquiredLock(value.fencing_token, was_waiting=False)
        self._waiters.on_lock(request.name, lock)
        return None

    def _parts(self, requests: Sequence[LockRequest]) -> list[Sequence[LockRequest]]:
        return parts_per_script(requests, is_cluster=self.pipeline.is_cluster)

    def _new_token(self) -> str:
        return self._instance_id + secrets.token_hex(16)

    async def release(self, lease: Lease, *changed_slots: Availability) -> None:
        """Release one lease and publish these states in the same round trip: see `release_each`."""
        await self.release_each([(lease, changed_slots)])

    async def release_each(self, releases: Sequence[tuple[Lease, Sequence[Availability]]]) -> None:
        """Release what is still held and publish the changed slots in the same round trip.

        The commands are queued at once, before any later command of this process, and the replies
        are not awaited. A release that fails is counted and sent again after Redis recovers; the
        lock expires in any case. Only a caller with too many releases before it has to wait.
        """
        held: list[LockRequest] = []
        messages: list[str | bytes] = []
        for lease, changed_slots in releases:
            parts = [part for state in changed_slots for part in availability_message(state)]
            if isinstance(lease, RedisLease):
                held += [LockRequest(name, lease.token) for name in lease.names]
                messages += parts
            else:
                self._local_locks.release(lease.names)
                for pair in zip(parts[::2], parts[1::2], strict=True):
                    self._pending_releases.add(self.pipeline.send("PUBLISH", *pair))
        self._release_all(held, messages)
        await self._pending_releases.wait_for_room()

    async def wait_for_releases(self) -> None:
        """Wait until Redis has replied to every release, or failed to."""
        await self._pending_releases.drain()

    def _release_all(
        self, held: Sequence[LockRequest], messages: Sequence[str | bytes] = ()
    ) -> None:
        """Release locks or leave their queues, whichever applies when Redis runs the script."""
        for request in held:
            self._renewer.remove(request.token)
        arguments = (self._instance_id, self._fencing_tokens.highest)
        for part in self._parts(held):
            command = script_command(RELEASE, part, arguments)
            reply = self.pipeline.send(*command, *messages)
            reply.add_done_callback(partial(self._on_released, part, command))
            self._pending_releases.add(reply)
            messages = ()  # the first command publishes them

    def _on_released(
        self,
        released: Sequence[LockRequest],
        command: Command,
        reply: asyncio.Future[list[bytes | None]],
    ) -> None:
        if reply.exception() is not None:
            self.pipeline.send_after_recovery(*command)
            return
        for request, lock in zip(released, reply.result(), strict=True):
            self._on_granted(request.name, lock)

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
        value = parse_lock(lock)
        self._fencing_tokens.observe(value.fencing_token)
        if value.token.startswith(self._instance_id) and value.token not in self._renewer:
            self._release_all([LockRequest(name, value.token)])  # its waiter has left


def _time_out(grant: Grant) -> None:
    if not grant.done():
        grant.set_result(None)
