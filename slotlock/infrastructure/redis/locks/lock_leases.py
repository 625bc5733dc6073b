"""Waits for locks, and leases on them, which Redis forgets unless this process renews them."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from itertools import takewhile
from time import monotonic

import msgspec

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_scripts import GRANT_TTL_MS, RENEW


@value_object
class Wait:
    """Since when and until when a caller waits for its locks, and what to call once it has to wait.

    `arrival` and `deadline` are times of the event loop. Waiters who came at most `give_way_s`
    seconds later go first, except inside one process. `on_wait` may be called once for each lock.
    """

    arrival: float
    deadline: float
    on_wait: Callable[[], object]
    give_way_s: float = 0.0


@value_object
class RedisLockLease:
    """Locks that one token holds in Redis until they are released or lost.

    `fencing_token` is greater than that of any earlier lease on one of these locks. `lost` is set
    once a lock is known to have expired or to be held by another token; leases that were acquired
    in one round trip share it.

    `next_arrival` is the earliest time, of the monotonic clock, at which the next caller of another
    process may have come: when the first of those came who still waited for the last of the locks;
    else when that lock was granted or, if it was free, requested.
    """

    names: tuple[str, ...]
    token: str
    fencing_token: int
    next_arrival: float
    lost: asyncio.Event = field(default_factory=asyncio.Event)


@value_object
class InProcessLockLease:
    """Locks that only this process knows, held while Redis is unavailable. They never expire."""

    names: tuple[str, ...]
    fencing_token: int
    next_arrival: float = math.inf
    lost: asyncio.Event = field(default_factory=asyncio.Event)


LockLease = RedisLockLease | InProcessLockLease


class FencingTokens:
    """The highest fencing token of Redis that this process knows."""

    def __init__(self) -> None:
        self.highest = 0
        self._last_issued = 0

    def observe(self, fencing_token: int) -> None:
        """Record a fencing token that Redis issued."""
        self.highest = max(self.highest, fencing_token)

    def issue(self) -> int:
        """Return a new fencing token without Redis, above all earlier ones of this process.

        Redis counts microseconds, so its next tokens are higher. The clock of this host counts for
        nothing: one that is ahead would raise the tokens of Redis for this process alone.
        """
        self._last_issued = max(self._last_issued, self.highest) + 1
        return self._last_issued


class _Renewal(msgspec.Struct):
    names: list[str]
    lost: asyncio.Event
    # Times of the monotonic clock.
    due_at: float
    valid_until: float


class LockLeaseRenewer:
    """Renews the locks of this process three times per time to live, by token.

    One timer serves all: the intervals are equal, so that `_renewals` begins with the one due next.
    It also renews what is due within half an interval, so that long leases share round trips.
    """

    def __init__(self, pipeline: AutoPipeline, ttl_ms: int) -> None:
        self._pipeline = pipeline
        self._ttl_ms = ttl_ms
        self._renewals: dict[str, _Renewal] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __contains__(self, token: str) -> bool:
        return token in self._renewals

    def add(self, token: str, name: str, lost: asyncio.Event, *, was_waiting: bool) -> None:
        """Renew a lock of this token from now on, and set `lost` if that fails.

        A lock that was granted to a waiter has a shorter time to live and is renewed at once.
        """
        renewal = self._renewals.get(token)
        if renewal is None:
            self.add_each({token: name}, lost, GRANT_TTL_MS if was_waiting else self._ttl_ms)
        else:
            renewal.names.append(name)
        if was_waiting:
            self._renew(token)

    def add_each(self, names: Mapping[str, str], lost: asyncio.Event, ttl_ms: int) -> None:
        """Renew locks from now on, each of a token of its own, and set `lost` if one fails."""
        now = monotonic()
        due_at, valid_until = now + self._ttl_ms / 3000, now + ttl_ms / 1000
        for token, name in names.items():
            self._renewals[token] = _Renewal([name], lost, due_at, valid_until)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(due_at, self._renew_due)

    def _renew_due(self) -> None:
        now, self._timer = monotonic(), None
        until = now + self._ttl_ms / 6000
        due = takewhile(lambda token: self._renewals[token].due_at <= until, self._renewals)
        for token in tuple(due):
            self._renew(token)
        if self._renewals:
            next_due_at = next(iter(self._renewals.values())).due_at
            self._timer = asyncio.get_running_loop().call_at(next_due_at, self._renew_due)

    def _renew(self, token: str) -> None:
        renewal = self._renewals.pop(token, None)
        if renewal is None:
            return
        now = monotonic()
        renewal.due_at, valid_until = now + self._ttl_ms / 3000, now + self._ttl_ms / 1000
        self._renewals[token] = renewal  # as the last one
        for name in renewal.names:
            reply = self._pipeline.send("EVAL", RENEW, 1, lock_keys(name).lock, token, self._ttl_ms)
            reply.add_done_callback(partial(self._on_renewed, token, valid_until))

    def _on_renewed(self, token: str, valid_until: float, reply: asyncio.Future[int]) -> None:
        renewal = self._renewals.get(token)
        if renewal is None:  # released meanwhile
            return
        if reply.exception() is not None:
            # Redis may still hold the lock, but not beyond the last confirmed renewal.
            is_lost = monotonic() > renewal.valid_until
        else:
            is_lost = not reply.result()
            renewal.valid_until = valid_until
        if is_lost:
            self.remove(token)
            renewal.lost.set()

    def remove(self, *tokens: str) -> None:
        """Stop renewing the locks of these tokens."""
        for token in tokens:
            self._renewals.pop(token, None)

    def stop(self) -> None:
        """Stop renewing all locks. They expire unless they are released."""
        self._renewals.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
