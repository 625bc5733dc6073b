"""The locks in Redis, as one instance sees them: a process with its waiters."""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from functools import partial
from itertools import count
from time import monotonic

from prometheus_client import Counter

from slotlock.infrastructure.redis.auto_pipeline import (
    AutoPipeline,
    Command,
    RedisUnavailableError,
    Reply,
)
from slotlock.infrastructure.redis.keys import wakeup_channel
from slotlock.infrastructure.redis.locks.lock_leases import (
    FencingTokens,
    LockLeaseRenewer,
    RedisLockLease,
    Wait,
)
from slotlock.infrastructure.redis.locks.lock_scripts import (
    ACQUIRE,
    INSTANCE_ID_CHARS,
    RELEASE,
    AcquiredLock,
    LockRequest,
    parse_lock,
    parse_wakeup,
    parts_per_script,
    script_command,
)
from slotlock.infrastructure.redis.locks.waiters import Grant, LockWaiters
from slotlock.infrastructure.redis.subscriber import RedisSubscriber

log = logging.getLogger("slotlock.redis")
RELEASE_FAILURES = Counter(
    "slotlock_release_failures_total",
    "Releases and published states that Redis did not confirm",
)
# Under normal load there are a few. Beyond this number, a release waits for the earlier ones.
MAX_PENDING_RELEASES = 1_000


class RedisLocks:
    """Acquires and releases locks of Redis, and renews their leases.

    The methods that acquire raise RedisUnavailableError. Nothing else raises it.
    """

    def __init__(self, pipeline: AutoPipeline, ttl_ms: int, fencing_tokens: FencingTokens) -> None:
        self._pipeline = pipeline
        self._ttl_ms = ttl_ms
        self._instance_id = secrets.token_hex(INSTANCE_ID_CHARS // 2)
        self._numbers = count(1)
        self._fencing_tokens = fencing_tokens
        self._renewer = LockLeaseRenewer(pipeline, ttl_ms)
        self.pending_releases = PendingReleases()
        self._waiters = LockWaiters(pipeline, self._instance_id, fencing_tokens, self._on_granted)
        self._wakeup_subscriber = RedisSubscriber(
            pipeline.client, self._on_wakeup, wakeup_channel(self._instance_id)
        )

    async def start(self, timeout_s: float) -> None:
        """Subscribe to wake-ups and wait until that is done, at most this many seconds."""
        self._wakeup_subscriber.start()
        await self._wakeup_subscriber.wait_until_subscribed(
            0.0 if self._pipeline.is_unavailable else timeout_s
        )

    async def stop(self) -> None:
        """Unsubscribe, stop renewing leases, and wait for the releases that are under way."""
        await self._wakeup_subscriber.stop()
        self._waiters.stop()
        self._renewer.stop()
        await self.pending_releases.drain()

    async def acquire(self, names: tuple[str, ...], wait: Wait) -> RedisLockLease | None:
        """Acquire all locks one after the other, or none, by the deadline."""
        token = self._new_token()
        lost = asyncio.Event()
        acquired: list[str] = []
        fencing_token = 0
        next_arrival = wait.arrival
        try:
            for name in names:
                lock = await self._acquire_one(name, token, wait)
                if lock is None:
                    break
                acquired.append(name)
                fencing_token = max(fencing_token, lock.fencing_token)
                next_arrival = lock.next_arrival
                self._renewer.add(token, name, lost, was_waiting=lock.was_waiting)
        except BaseException:
            self.release([LockRequest(name, token) for name in acquired])
            raise
        if len(acquired) < len(names) or lost.is_set():
            self.release([LockRequest(name, token) for name in acquired])
            return None
        return RedisLockLease(names, token, fencing_token, next_arrival, lost)

    async def _acquire_one(self, name: str, token: str, wait: Wait) -> AcquiredLock | None:
        """Acquire one lock. On any failure, the token is removed from Redis."""
        request = LockRequest(name, token)
        if wait.deadline <= monotonic():
            return (await self._send_acquire([request]))[0]
        try:
            return await self._acquire_or_wait(request, wait)
        except BaseException as error:
            self._withdraw([request], error)
            raise

    def _withdraw(self, requested: Sequence[LockRequest], error: BaseException) -> None:
        """Release what Redis may have granted before an error, for example a cancellation."""
        if not isinstance(error, RedisUnavailableError) or error.sent:
            self.release(requested)

    async def _acquire_or_wait(self, request: LockRequest, wait: Wait) -> AcquiredLock | None:
        with self._waiters.pending_grant(request.name, request.token) as grant:
            (lock,) = await self._try_acquire([request], wait.arrival, wait.give_way_s)
            if lock is not None:
                return lock
            wait.on_wait()
            timer = asyncio.get_running_loop().call_at(wait.deadline, _time_out, grant)
            try:
                granted = await grant
            finally:
                timer.cancel()
        if granted is None:
            self.release([request])
            return None
        self._fencing_tokens.observe(granted.fencing_token)
        # Too early if the waiter yielded to another: its place was later than its arrival.
        next_arrival = wait.arrival + granted.next_after_s
        return AcquiredLock(granted.fencing_token, was_waiting=True, next_arrival=next_arrival)

    async def _try_acquire(
        self,
        requested: Sequence[LockRequest],
        arrival: float | None = None,
        give_way_s: float = 0.0,
    ) -> list[AcquiredLock | None]:
        """Acquire the locks that are free, and join the queues of the others.

        `arrival` is when the caller came. None joins no queue. `give_way_s`: see `Wait`.
        """
        now = monotonic()
        waited_us = -1 if arrival is None else int((now - arrival) * 1e6)
        give_way_us, highest = int(give_way_s * 1e6), self._fencing_tokens.highest
        arguments = (self._instance_id, self._ttl_ms, highest, waited_us, give_way_us)
        replies = [
            self._pipeline.send(*script_command(ACQUIRE, part, arguments))
            for part in self._parts(requested)
        ]
        locks = [lock for reply in replies for lock in await reply]
        acquired: list[AcquiredLock | None] = []
        for request, lock in zip(requested, locks, strict=True):
            token, _, fencing_token = lock.partition(b":")
            if token.decode() == request.token:
                # The reply may come late, and others may have come to other processes meanwhile.
                issued = int(fencing_token.partition(b":")[0])
                acquired.append(AcquiredLock(issued, was_waiting=False, next_arrival=now))
                highest = max(highest, issued)
            else:
                self._waiters.on_lock(request.name, lock)
                acquired.append(None)
        self._fencing_tokens.observe(highest)
        return acquired

    def _parts(self, requests: Sequence[LockRequest]) -> list[Sequence[LockRequest]]:
        return parts_per_script(requests, is_cluster=self._pipeline.is_cluster)

    def _new_token(self) -> str:
        # A random number for each lock would take a system call, and more bytes of Redis.
        return f"{self._instance_id}{next(self._numbers):x}"

    async def acquire_each(self, names: Sequence[str]) -> list[RedisLockLease | None]:
        """Acquire each of these locks in one round trip. Returns None for each that is not free."""
        instance_id = self._instance_id
        requested = [
            LockRequest(name, f"{instance_id}{number:x}")
            for name, number in zip(names, self._numbers, strict=False)
        ]
        locks = await self._send_acquire(requested)
        lost = asyncio.Event()  # shared: their holders write conditionally instead of watching it
        leases: list[RedisLockLease | None] = []
        held: dict[str, str] = {}
        for request, lock in zip(requested, locks, strict=True):
            if lock is None:
                leases.append(None)
                continue
            held[request.token] = request.name
            leases.append(
                RedisLockLease(
                    (request.name,), request.token, lock.fencing_token, lock.next_arrival, lost
                )
            )
        if held:
            self._renewer.add_each(held, lost, self._ttl_ms)
        return leases

    async def _send_acquire(self, requested: Sequence[LockRequest]) -> list[AcquiredLock | None]:
        """Acquire the locks that are free. On any failure, the tokens are removed from Redis."""
        try:
            return await self._try_acquire(requested)
        except BaseException as error:
            self._withdraw(requested, error)
            raise

    def publish(self, channel: str | bytes, message: str | bytes) -> None:
        """Publish a message. Its failure is counted like that of a release."""
        self.pending_releases.add(self._pipeline.send("PUBLISH", channel, message))

    def release(self, held: Sequence[LockRequest], messages: Sequence[str | bytes] = ()) -> None:
        """Release locks or leave their queues, whichever applies when Redis runs the script."""
        self._renewer.remove(*[request.token for request in held])
        arguments = (self._instance_id, self._fencing_tokens.highest)
        for part in self._parts(held):
            command = script_command(RELEASE, part, arguments)
            reply = self._pipeline.send(*command, *messages)
            reply.add_done_callback(partial(self._on_released, part, command))
            self.pending_releases.add(reply)
            messages = ()  # the first command publishes them

    def _on_released(
        self,
        released: Sequence[LockRequest],
        command: Command,
        reply: asyncio.Future[list[bytes | None]],
    ) -> None:
        if reply.exception() is not None:
            self._pipeline.send_after_recovery(*command)
            return
        for request, lock in zip(released, reply.result(), strict=True):
            if lock is not None:
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
            self.release([LockRequest(name, value.token)])  # its waiter has left


def _time_out(grant: Grant) -> None:
    if not grant.done():
        grant.set_result(None)


class PendingReleases:
    """The releases and published states that Redis has not confirmed yet.

    Nobody awaits their replies. They are counted, so that none is lost silently.
    """

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
