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

from slotlock.domain.availability import Availability
from slotlock.domain.bookings import SlotId
from slotlock.stores.announcements import announcement
from slotlock.stores.leases import Lease, Renewals
from slotlock.stores.listening import Listener
from slotlock.stores.local_locks import LocalLocks
from slotlock.stores.lock_scripts import (
    ACQUIRE,
    OFFICE_CHARS,
    RELEASE,
    keys,
    slot_and_lock,
    token_and_fence,
    wake_channel,
)
from slotlock.stores.redis import RedisAwayError, RedisLine
from slotlock.stores.waiting import Turn, Waiting

__all__ = ["LOCK_TTL_MS", "Lease", "Locks"]

log = logging.getLogger("slotlock.redis")

LOCK_TTL_MS = 10_000
# How long a start waits for the wake-up channel: without it, waiting is only slower.
START_WITHIN_S = 1.0

WAIT = Histogram(
    "slotlock_lock_wait_seconds",
    "Time from asking for the locks of one or more slots to the answer, acquired or not",
    buckets=(
        *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
        *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0),
    ),
)


class Locks:
    """The locks of all slots, as one office knows them: a process with its waiting room."""

    def __init__(
        self, line: RedisLine, ttl_ms: int = LOCK_TTL_MS, *, measured: bool = True
    ) -> None:
        self.line = line
        self.ttl_ms = ttl_ms
        self._measured = measured  # turns of upkeep are nobody's wait
        self._office = secrets.token_hex(OFFICE_CHARS // 2)
        self._fence = 0  # the highest seen
        self._held = Renewals(line, ttl_ms)
        self._here = LocalLocks()
        self._waiting = Waiting(line, self._office, lambda: self._fence, self._handed)
        self._wakes = Listener(line.client, self._woken, wake_channel(self._office))

    async def start(self, within_s: float = START_WITHIN_S) -> None:
        """Listen for locks that other processes hand to this one; ready by the time it returns.

        If that takes longer than so many seconds, it goes on by itself.
        """
        self._wakes.start()
        await self._wakes.listening(0.0 if self.line.away else within_s)

    async def stop(self) -> None:
        """Stop listening, and renew nothing any more."""
        await self._wakes.stop()
        self._waiting.stop()
        self._held.stop()

    async def acquire(self, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease | None:
        """A lease on all the slots, or None when it was not to be had within the seconds.

        Who waits is served first come, first served; nobody who does not wait passes them by.
        Several slots are locked one after the other in sorted order, so that no two callers wait
        for each other; all or none.
        """
        asked_at = time.perf_counter()
        wanted = tuple(sorted(set(slot_ids)))
        until = asyncio.get_running_loop().time() + wait_s
        try:
            return await self._acquire(wanted, until)
        except RedisAwayError:
            if not await self._here.acquire(wanted, until):
                return None
            self._fence = max(self._fence + 1, time.time_ns() // 1000)
            return Lease(wanted, None, self._fence)
        finally:
            if self._measured:
                WAIT.observe(time.perf_counter() - asked_at)

    async def _acquire(self, slot_ids: tuple[SlotId, ...], until: float) -> Lease | None:
        lease = Lease((), self._office + secrets.token_hex(16), 0)
        try:
            for slot_id in slot_ids:
                if not await self._take(lease, slot_id, until):
                    break
        finally:
            if lease.slot_ids != slot_ids or lease.lost.is_set():
                self._let_go(lease)
        return lease if lease.slot_ids == slot_ids and not lease.lost.is_set() else None

    async def _take(self, lease: Lease, slot_id: SlotId, until: float) -> bool:
        """Whether the lease now has this slot too; if not, nothing of it is left there."""
        token, waits = lease.token or "", until > asyncio.get_running_loop().time()
        turn = self._waiting.stand(slot_id, token) if waits else None
        may_be_ours = True
        try:
            fence, handed = await self._ask(slot_id, token, turn, until)
            may_be_ours = waits and fence is None
        except RedisAwayError as error:
            may_be_ours = error.sent
            raise
        finally:
            if turn is not None:
                self._waiting.leave(slot_id, token)
            if may_be_ours:
                self._give_back(slot_id, token)
        if fence is not None:
            self._fence = max(self._fence, fence)
            lease.slot_ids += (slot_id,)
            lease.fence = max(lease.fence, fence)
            self._held.keep(lease, handed=handed)
        return fence is not None

    async def _ask(
        self, slot_id: SlotId, token: str, turn: Turn | None, until: float
    ) -> tuple[int | None, bool]:
        """The fence of the lock, if it is ours, and whether it was handed to us in line."""
        arguments = (token, self.ttl_ms, self._fence, int(turn is not None))
        lock = await self.line.send("EVAL", ACQUIRE, 3, *keys(slot_id), *arguments)
        holder, fence = token_and_fence(lock)
        if holder == token:
            return fence, False
        self._waiting.hear(slot_id, lock)
        if turn is None:
            return None, False
        timer = asyncio.get_running_loop().call_at(until, _time_is_up, turn)
        try:
            return await turn, True
        finally:
            timer.cancel()

    async def release(self, lease: Lease, *news: Availability) -> None:
        """Give the lease back if it is still ours, and announce the news in the same round trip.

        All is in line before this first waits, so cancelling the caller takes nothing back.
        """
        for answer in self._let_go(lease, *news):
            with contextlib.suppress(RedisAwayError):
                await asyncio.shield(answer)

    def _let_go(self, lease: Lease, *news: Availability) -> list[asyncio.Future[Any]]:
        told = [part for state in news for part in announcement(state)]
        if lease.token is None:
            self._here.release(lease.slot_ids)
            pairs = zip(told[::2], told[1::2], strict=True)
            return [self.line.send("PUBLISH", channel, text) for channel, text in pairs]
        self._held.end(lease)
        answers = []
        for slot_id in lease.slot_ids:
            answers.append(self._give_back(slot_id, lease.token, told))
            told = []
        return answers

    def _give_back(
        self, slot_id: SlotId, token: str, told: list[str | bytes] | None = None
    ) -> asyncio.Future[Any]:
        """Free the lock or leave the line, whichever it is by now."""
        command = ("EVAL", RELEASE, 3, *keys(slot_id), token, self._fence)
        answer = self.line.send(*command, *(told or ()))
        answer.add_done_callback(partial(self._given_back, slot_id, command))
        return answer

    def _given_back(
        self, slot_id: SlotId, command: tuple[Any, ...], answer: asyncio.Future[Any]
    ) -> None:
        if answer.exception() is None:
            self._handed(slot_id, answer.result())
        else:
            self.line.owe(*command)

    def _woken(self, _channel: str, message: bytes) -> None:
        try:
            slot_id, lock = slot_and_lock(message)
        except ValueError:
            log.warning("A wake-up that is not ours was ignored: %.200r", message)
            return
        self._handed(slot_id, lock)

    def _handed(self, slot_id: SlotId, lock: bytes | None) -> None:
        if lock is None or self._waiting.hear(slot_id, lock):
            return
        token, fence = token_and_fence(lock)
        self._fence = max(self._fence, fence)
        if token.startswith(self._office) and token not in self._held:
            self._give_back(slot_id, token)  # it waits no more


def _time_is_up(turn: Turn) -> None:
    if not turn.done():
        turn.set_result(None)
