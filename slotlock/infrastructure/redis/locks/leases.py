"""Leases on locks, which Redis forgets unless this process renews them."""

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.scripts import GRANT_TTL_MS, RENEW


@dataclass(frozen=True, slots=True, eq=False)
class RedisLease:
    """Locks that one token holds in Redis until they are released or lost.

    `fencing_token` is greater than that of any earlier lease on one of these locks. `lost` is set
    once a lock is known to have expired or to be held by another token.

    `next_arrival` is when the first of those came who waited for a single lock when it was granted,
    a time of the event loop; None if nobody waited.
    """

    names: tuple[str, ...]
    token: str
    fencing_token: int
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    next_arrival: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InProcessLease:
    """Locks that only this process knows, held while Redis is unavailable. They never expire."""

    names: tuple[str, ...]
    fencing_token: int
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    next_arrival: None = None


Lease = RedisLease | InProcessLease


class FencingTokens:
    """The highest fencing token known to this process."""

    def __init__(self) -> None:
        self.highest = 0

    def observe(self, fencing_token: int) -> None:
        """Record a fencing token that Redis issued."""
        self.highest = max(self.highest, fencing_token)

    def issue(self) -> int:
        """Return a new fencing token without Redis: the time in microseconds, as Redis does."""
        self.highest = max(self.highest + 1, time.time_ns() // 1000)
        return self.highest


@dataclass(slots=True)
class _Renewal:
    names: list[str]
    lost: asyncio.Event
    timer: asyncio.TimerHandle
    valid_until: float  # time of the event loop


class LeaseRenewer:
    """Renews the locks of this process three times per time to live, by token."""

    def __init__(self, pipeline: AutoPipeline, ttl_ms: int) -> None:
        self._pipeline = pipeline
        self._ttl_ms = ttl_ms
        self._renewals: dict[str, _Renewal] = {}

    def __contains__(self, token: str) -> bool:
        return token in self._renewals

    def add(self, token: str, name: str, lost: asyncio.Event, *, was_waiting: bool) -> None:
        """Renew a lock of this token from now on, and set `lost` if that fails.

        A lock that was granted to a waiter has a shorter time to live and is renewed at once.
        """
        loop = asyncio.get_running_loop()
        renewal = self._renewals.get(token)
        if renewal is None:
            valid_until = loop.time() + (GRANT_TTL_MS if was_waiting else self._ttl_ms) / 1000
            timer = loop.call_later(self._ttl_ms / 3000, self._renew, token)
            self._renewals[token] = _Renewal([name], lost, timer, valid_until)
        else:
            renewal.names.append(name)
        if was_waiting:
            self._renew(token)

    def _renew(self, token: str) -> None:
        renewal = self._renewals.get(token)
        if renewal is None:
            return
        renewal.timer.cancel()
        loop = asyncio.get_running_loop()
        valid_until = loop.time() + self._ttl_ms / 1000
        for name in renewal.names:
            reply = self._pipeline.send("EVAL", RENEW, 1, lock_keys(name).lock, token, self._ttl_ms)
            reply.add_done_callback(partial(self._on_renewed, token, valid_until))
        renewal.timer = loop.call_later(self._ttl_ms / 3000, self._renew, token)

    def _on_renewed(self, token: str, valid_until: float, reply: asyncio.Future[int]) -> None:
        renewal = self._renewals.get(token)
        if renewal is None:  # released meanwhile
            return
        if reply.exception() is not None:
            # Redis may still hold the lock, but not beyond the last confirmed renewal.
            is_lost = asyncio.get_running_loop().time() > renewal.valid_until
        else:
            is_lost = not reply.result()
            renewal.valid_until = valid_until
        if is_lost:
            self.remove(token)
            renewal.lost.set()

    def remove(self, token: str) -> None:
        """Stop renewing the locks of this token."""
        renewal = self._renewals.pop(token, None)
        if renewal is not None:
            renewal.timer.cancel()

    def stop(self) -> None:
        """Stop renewing all locks. They expire unless they are released."""
        for renewal in self._renewals.values():
            renewal.timer.cancel()
        self._renewals.clear()
