"""Those of this process who stand in line for a lock, kept in their places until their turn."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.scripts import HEARTBEAT_S, KEEP_ALIVE, parse_lock

# The fence of what was given; None when the time was up.
Grant = asyncio.Future[int | None]


class LockWaiters:
    """The turns awaited here, by slot and token. One timer a slot tends all of them."""

    def __init__(
        self,
        pipeline: AutoPipeline,
        instance_id: str,
        highest_fencing_token: Callable[[], int],
        on_granted: Callable[[str, bytes | None], object],
    ) -> None:
        self._pipeline = pipeline
        self._instance_id = instance_id
        self._highest_fencing_token = highest_fencing_token
        self._on_granted = on_granted
        self._grants: dict[str, dict[str, Grant]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def enqueue(self, slot_id: str, token: str) -> Grant:
        """A turn to await. Called before Redis hears of it: its answer may come later than it."""
        turn: Grant = asyncio.get_running_loop().create_future()
        self._grants.setdefault(slot_id, {})[token] = turn
        if slot_id not in self._timers:
            self._schedule_keep_alive(slot_id, HEARTBEAT_S)
        return turn

    def dequeue(self, slot_id: str, token: str) -> None:
        """Await no turn any more."""
        turns = self._grants[slot_id]
        turn = turns.pop(token)
        if turn.done() and not turn.cancelled():
            turn.exception()  # nobody has to await it
        if not turns:
            del self._grants[slot_id]
            self._timers.pop(slot_id).cancel()

    def on_lock(self, slot_id: str, lock: bytes | None) -> bool:
        """Whether the lock was handed to somebody here, who now has the turn."""
        token, fence = parse_lock(lock) if lock else ("", 0)
        turn = self._grants.get(slot_id, {}).get(token)
        if turn is not None and not turn.done():
            turn.set_result(fence)
        return turn is not None

    def stop(self) -> None:
        """Tend no line any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _schedule_keep_alive(self, slot_id: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[slot_id] = loop.call_later(seconds, self._keep_alive, slot_id)

    def _keep_alive(self, slot_id: str) -> None:
        # It also heals a wake-up that was lost, and hands on a lock that ran out.
        tokens = [token for token, turn in self._grants[slot_id].items() if not turn.done()]
        arguments = (*lock_keys(slot_id), self._instance_id, self._highest_fencing_token(), *tokens)
        answer = self._pipeline.send("EVAL", KEEP_ALIVE, 3, *arguments)
        answer.add_done_callback(partial(self._on_keep_alive_reply, slot_id, self._timers[slot_id]))

    def _on_keep_alive_reply(
        self, slot_id: str, timer: asyncio.TimerHandle, answer: asyncio.Future[Any]
    ) -> None:
        if self._timers.get(slot_id) is not timer:  # they all left, and others may have come
            return
        error = answer.exception()
        if error is not None:
            for turn in self._grants[slot_id].values():
                if not turn.done():
                    turn.set_exception(RedisUnavailableError(str(error), sent=True))
            self._schedule_keep_alive(slot_id, HEARTBEAT_S)
            return
        lock, lasts_ms = answer.result()
        self._on_granted(slot_id, lock)
        # It may be the lock of one who died before it heard: nobody else tells when it runs out.
        self._schedule_keep_alive(
            slot_id, min(HEARTBEAT_S, lasts_ms / 1000 + 0.002) if lasts_ms > 0 else HEARTBEAT_S
        )
