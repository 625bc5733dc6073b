"""The locks of slots, fair and first come first served; they order and shed, and are never what
is safe: that is the version guard in MongoDB.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from functools import partial
from typing import Any

from prometheus_client import Histogram

from slotlock.domain.booking.availability import Availability
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import lock_keys, wakeup_channel
from slotlock.infrastructure.redis.locks.leases import Lease, LeaseRenewer
from slotlock.infrastructure.redis.locks.local import InProcessLocks
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

__all__ = ["LOCK_TTL_MS", "Lease", "Locks"]

log = logging.getLogger("slotlock.redis")

LOCK_TTL_MS = 10_000
# How long a start waits for the wake-up channel: without it, waiting is only slower.
START_TIMEOUT_S = 1.0

LOCK_WAIT = Histogram(
    "slotlock_lock_wait_seconds",
    "Time from requesting the locks of one or more slots to the result, acquired or not",
    buckets=(
        *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
        *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0),
    ),
)


class Locks:
    """The locks of all slots, as one office knows them: a process with its waiting room."""

    def __init__(
        self, pipeline: AutoPipeline, ttl_ms: int = LOCK_TTL_MS, *, record_metrics: bool = True
    ) -> None:
        self.pipeline = pipeline
        self.ttl_ms = ttl_ms
        self._record_metrics = record_metrics  # turns of upkeep are nobody's wait
        self._instance_id = secrets.token_hex(INSTANCE_ID_CHARS // 2)
        self._highest_fencing_token = 0  # the highest seen
        self._renewer = LeaseRenewer(pipeline, ttl_ms)
        self._local_locks = InProcessLocks()
        self._waiters = LockWaiters(
            pipeline, self._instance_id, lambda: self._highest_fencing_token, self._on_granted
        )
        self._wakeup_subscriber = RedisSubscriber(
            pipeline.client, self._on_wakeup, wakeup_channel(self._instance_id)
        )

    async def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Listen for locks that other processes hand to this one; ready by the time it returns.

        If that takes longer than so many seconds, it goes on by itself.
        """
        self._wakeup_subscriber.start()
        await self._wakeup_subscriber.wait_until_subscribed(
            0.0 if self.pipeline.is_unavailable else timeout_s
        )

    async def stop(self) -> None:
        """Stop listening, and renew nothing any more."""
        await self._wakeup_subscriber.stop()
        self._waiters.stop()
        self._renewer.stop()

    async def acquire(self, *slot_ids: str, wait_s: float = 0.0) -> Lease | None:
        """A lease on all the slots, or None when it was not to be had within the seconds.

        Who waits is served first come, first served; nobody who does not wait passes them by.
        Several slots are locked one after the other in sorted order, so that no two callers wait
        for each other; all or none.
        """
        asked_at = time.perf_counter()
        wanted = tuple(sorted(set(slot_ids)))
        until = asyncio.get_running_loop().time() + wait_s
        try:
            return await self._acquire_all(wanted, until)
        except RedisUnavailableError:
            if not await self._local_locks.acquire(wanted, until):
                return None
            self._highest_fencing_token = max(
                self._highest_fencing_token + 1, time.time_ns() // 1000
            )
            return Lease(wanted, None, self._highest_fencing_token)
        finally:
            if self._record_metrics:
                LOCK_WAIT.observe(time.perf_counter() - asked_at)

    async def _acquire_all(self, slot_ids: tuple[str, ...], deadline: float) -> Lease | None:
        lease = Lease((), self._instance_id + secrets.token_hex(16), 0)
        try:
            for slot_id in slot_ids:
                if not await self._acquire_one(lease, slot_id, deadline):
                    break
        finally:
            if lease.slot_ids != slot_ids or lease.lost.is_set():
                self._release_all(lease)
        return lease if lease.slot_ids == slot_ids and not lease.lost.is_set() else None

    async def _acquire_one(self, lease: Lease, slot_id: str, deadline: float) -> bool:
        """Whether the lease now has this slot too; if not, nothing of it is left there."""
        token, waits = lease.owner_token or "", deadline > asyncio.get_running_loop().time()
        turn = self._waiters.enqueue(slot_id, token) if waits else None
        may_be_ours = True
        try:
            fence, handed = await self._request(slot_id, token, turn, deadline)
            may_be_ours = waits and fence is None
        except RedisUnavailableError as error:
            may_be_ours = error.sent
            raise
        finally:
            if turn is not None:
                self._waiters.dequeue(slot_id, token)
            if may_be_ours:
                self._release_one(slot_id, token)
        if fence is not None:
            self._highest_fencing_token = max(self._highest_fencing_token, fence)
            lease.slot_ids += (slot_id,)
            lease.fencing_token = max(lease.fencing_token, fence)
            self._renewer.start_renewing(lease, was_granted=handed)
        return fence is not None

    async def _request(
        self, slot_id: str, token: str, grant: Grant | None, deadline: float
    ) -> tuple[int | None, bool]:
        """The fence of the lock, if it is ours, and whether it was handed to us in line."""
        arguments = (token, self.ttl_ms, self._highest_fencing_token, int(grant is not None))
        lock = await self.pipeline.send("EVAL", ACQUIRE, 3, *lock_keys(slot_id), *arguments)
        holder, fence = parse_lock(lock)
        if holder == token:
            return fence, False
        self._waiters.on_lock(slot_id, lock)
        if grant is None:
            return None, False
        timer = asyncio.get_running_loop().call_at(deadline, _resolve_timeout, grant)
        try:
            return await grant, True
        finally:
            timer.cancel()

    async def release(self, lease: Lease, *changed_slots: Availability) -> None:
        """Give the lease back if it is still ours, and announce the news in the same round trip.

        All is in line before this first waits, so cancelling the caller takes nothing back.
        """
        for answer in self._release_all(lease, *changed_slots):
            with contextlib.suppress(RedisUnavailableError):
                await asyncio.shield(answer)

    def _release_all(self, lease: Lease, *changed_slots: Availability) -> list[asyncio.Future[Any]]:
        told = [part for state in changed_slots for part in availability_message(state)]
        if lease.owner_token is None:
            self._local_locks.release(lease.slot_ids)
            pairs = zip(told[::2], told[1::2], strict=True)
            return [self.pipeline.send("PUBLISH", channel, text) for channel, text in pairs]
        self._renewer.stop_renewing(lease)
        answers = []
        for slot_id in lease.slot_ids:
            answers.append(self._release_one(slot_id, lease.owner_token, told))
            told = []
        return answers

    def _release_one(
        self, slot_id: str, token: str, messages: list[str | bytes] | None = None
    ) -> asyncio.Future[Any]:
        """Free the lock or leave the line, whichever it is by now."""
        command = ("EVAL", RELEASE, 3, *lock_keys(slot_id), token, self._highest_fencing_token)
        answer = self.pipeline.send(*command, *(messages or ()))
        answer.add_done_callback(partial(self._on_released, slot_id, command))
        return answer

    def _on_released(
        self, slot_id: str, command: tuple[Any, ...], answer: asyncio.Future[Any]
    ) -> None:
        if answer.exception() is None:
            self._on_granted(slot_id, answer.result())
        else:
            self.pipeline.send_after_recovery(*command)

    def _on_wakeup(self, _channel: str, message: bytes) -> None:
        try:
            slot_id, lock = parse_wakeup(message)
        except ValueError:
            log.warning("ignored an unknown wake-up message: %.200r", message)
            return
        self._on_granted(slot_id, lock)

    def _on_granted(self, slot_id: str, lock: bytes | None) -> None:
        if lock is None or self._waiters.on_lock(slot_id, lock):
            return
        token, fence = parse_lock(lock)
        self._highest_fencing_token = max(self._highest_fencing_token, fence)
        if token.startswith(self._instance_id) and token not in self._renewer:
            self._release_one(slot_id, token)  # it waits no more


def _resolve_timeout(grant: Grant) -> None:
    if not grant.done():
        grant.set_result(None)
