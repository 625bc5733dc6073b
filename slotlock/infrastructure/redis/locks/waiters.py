"""The callers of this process that wait for locks. Heartbeats maintain their queues in Redis."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError, Reply
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_leases import FencingTokens
from slotlock.infrastructure.redis.locks.lock_scripts import (
    HEARTBEAT_S,
    KEEP_ALIVE,
    LockValue,
    parse_lock,
)
from slotlock.infrastructure.tasks import ignore_unretrieved

# Resolves to the value of the lock when it is granted, or to None at the deadline.
Grant = asyncio.Future[LockValue | None]


class LockWaiters:
    """The pending grants by lock and token. One heartbeat per lock is sent for all of them."""

    def __init__(
        self,
        pipeline: AutoPipeline,
        instance_id: str,
        fencing_tokens: FencingTokens,
        on_granted: Callable[[str, bytes | None], object],
    ) -> None:
        self._pipeline = pipeline
        self._instance_id = instance_id
        self._fencing_tokens = fencing_tokens
        self._on_granted = on_granted
        self._grants: dict[str, dict[str, Grant]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        pipeline.add_open_listener(self._fail_all)

    @contextmanager
    def pending_grant(self, name: str, token: str) -> Iterator[Grant]:
        """Register a waiter of this lock. Enter it first: a grant may overtake Redis's reply."""
        grant: Grant = asyncio.get_running_loop().create_future()
        self._grants.setdefault(name, {})[token] = grant
        if name not in self._timers:
            self._schedule_heartbeat(name)
        try:
            yield grant
        finally:
            self._remove(name, token)

    def _remove(self, name: str, token: str) -> None:
        grants = self._grants[name]
        grant = grants.pop(token)
        if grant.done():
            ignore_unretrieved(grant)
        if not grants:
            del self._grants[name]
            self._timers.pop(name).cancel()

    def on_lock(self, name: str, lock: bytes | None) -> bool:
        """Resolve the grant of the token that holds the lock. Returns whether it waits here."""
        value = parse_lock(lock) if lock else LockValue("", 0)
        grant = self._grants.get(name, {}).get(value.token)
        if grant is not None and not grant.done():
            grant.set_result(value)
        return grant is not None

    def stop(self) -> None:
        """Send no more heartbeats."""
        for timer in self._timers.values():
            timer.cancel()

    def _fail_all(self) -> None:
        for name in self._grants:
            self._fail(name, "Redis is not in use")

    def _fail(self, name: str, reason: str) -> None:
        for grant in self._grants[name].values():
            if not grant.done():
                grant.set_exception(RedisUnavailableError(reason, sent=True))

    def _schedule_heartbeat(self, name: str, ttl_s: float = math.inf) -> None:
        """Send the next heartbeat with those of other locks, or when this one has expired."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        # All locks use the same times, so that their heartbeats are one round trip.
        shared_at = math.ceil(now / HEARTBEAT_S + 0.5) * HEARTBEAT_S
        at = min(shared_at, now + ttl_s + 0.002)
        self._timers[name] = loop.call_at(at, self._send_heartbeat, name)

    def _send_heartbeat(self, name: str) -> None:
        # The script also grants a lock that expired, and replaces a lost wake-up message.
        tokens = [token for token, grant in self._grants[name].items() if not grant.done()]
        highest = self._fencing_tokens.highest
        reply = self._pipeline.run_script(
            KEEP_ALIVE, lock_keys(name), self._instance_id, highest, *tokens
        )
        reply.add_done_callback(partial(self._on_heartbeat_reply, name, self._timers[name]))

    def _on_heartbeat_reply(
        self, name: str, timer: asyncio.TimerHandle, reply: asyncio.Future[Reply]
    ) -> None:
        if self._timers.get(name) is not timer:  # all waiters left; others may have come since
            return
        error = reply.exception()
        if error is not None:
            self._fail(name, str(error))
            self._schedule_heartbeat(name)
            return
        lock, ttl_ms = reply.result()
        self._on_granted(name, lock)
        # If the holder died, no message reports that its lock expired.
        self._schedule_heartbeat(name, ttl_ms / 1000 if ttl_ms > 0 else math.inf)
