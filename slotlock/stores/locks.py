"""The lock of a slot: one Redis key that sheds and orders contention; it is never what is safe."""

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Histogram

from slotlock.domain.slots import Availability, SlotId
from slotlock.stores.announcements import announcement
from slotlock.stores.redis import RedisAwayError, RedisLine

LOCK_TTL_MS = 10_000

WAIT = Histogram(
    "slotlock_lock_wait_seconds",
    "Time from asking for a slot's lock to the answer, acquired or not",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)

# SET NX PX in a script of its own, so that later it can bring back more in the same round trip.
ACQUIRE = """
return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
"""

# Compare-and-delete: the key may have run out and be another's by now (D1's plain DEL frees it).
# The announcement travels along, so that releasing and telling are one round trip.
RELEASE = """
local released = 0
if redis.call('get', KEYS[1]) == ARGV[1] then released = redis.call('del', KEYS[1]) end
if ARGV[2] then redis.call('publish', ARGV[2], ARGV[3]) end
return released
"""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to be served at a slot until it is released or runs out.

    `token` is None for a lease that only this process knows, given while Redis is away.
    """

    slot_id: SlotId
    token: str | None
    others: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Locks:
    """The locks of all slots."""

    line: RedisLine
    ttl_ms: int = LOCK_TTL_MS
    _held_here: set[SlotId] = field(default_factory=set)

    async def acquire(self, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease | None:
        """The lease, or None while somebody else holds it. Never waits for them."""
        until = time.monotonic() + wait_s
        asked_at = time.perf_counter()
        try:
            got = []
            for slot_id in sorted(slot_ids):
                while True:
                    lease = await self._acquire(slot_id)
                    if lease:
                        got.append(lease)
                        break
                    if time.monotonic() >= until:
                        for each in got:
                            await self.release(each)
                        return None
                    await asyncio.sleep(0.005)
            got[0].others.extend(got[1:])
            return got[0]
        finally:
            WAIT.observe(time.perf_counter() - asked_at)

    async def _acquire(self, slot_id: SlotId) -> Lease | None:
        lease = Lease(slot_id, secrets.token_hex(16))
        answer = self.line.send("EVAL", ACQUIRE, 1, _key(slot_id), lease.token, self.ttl_ms)
        try:
            return lease if await asyncio.shield(answer) else None
        except RedisAwayError as error:
            if error.sent:  # it may be done yet, when a Redis that hung goes on
                self._owe(lease)
            return self._acquire_here(slot_id)
        except asyncio.CancelledError:
            answer.add_done_callback(lambda _: self._give_back(lease, None))
            raise

    def _acquire_here(self, slot_id: SlotId) -> Lease | None:
        if slot_id in self._held_here:
            return None
        self._held_here.add(slot_id)
        return Lease(slot_id, None)

    async def release(self, lease: Lease, *allnews: Availability) -> None:
        for other in lease.others:
            await self.release(other)
        for n in allnews[1:]:
            self.line.send("PUBLISH", *announcement(n))
        await self._release(lease, allnews[0] if allnews else None)

    async def _release(self, lease: Lease, news: Availability | None = None) -> None:
        """Give the lease back if it is still ours, and announce the news in the same round trip.

        Both are in line before this first waits, so cancelling the caller takes neither back.
        """
        try:
            await self._give_back(lease, news)
        except RedisAwayError:
            if lease.token is not None:
                self._owe(lease)

    def _owe(self, lease: Lease) -> None:
        self.line.owe("EVAL", RELEASE, 1, _key(lease.slot_id), lease.token)

    def _give_back(self, lease: Lease, news: Availability | None) -> asyncio.Future[Any]:
        told = announcement(news) if news else ()
        if lease.token is None:
            self._held_here.discard(lease.slot_id)
            return self.line.send("PUBLISH", *told) if told else _done()
        return self.line.send("EVAL", RELEASE, 1, _key(lease.slot_id), lease.token, *told)


def _done() -> asyncio.Future[Any]:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


def _key(slot_id: SlotId) -> str:
    # Braces: on a Redis Cluster everything of one slot lies on one node.
    return f"slotlock:{{{slot_id}}}:lock"
