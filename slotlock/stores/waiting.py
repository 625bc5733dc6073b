"""Those of this process who stand in line for a lock, kept in their places until their turn."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from slotlock.domain.bookings import SlotId
from slotlock.stores.lock_scripts import BEAT_S, TEND, keys, token_and_fence
from slotlock.stores.redis import RedisAwayError, RedisLine

# The fence of what was given; None when the time was up.
Turn = asyncio.Future[int | None]


class Waiting:
    """The turns awaited here, by slot and token. One timer a slot tends all of them."""

    def __init__(
        self,
        line: RedisLine,
        office: str,
        seen: Callable[[], int],
        handed: Callable[[SlotId, bytes | None], object],
    ) -> None:
        self._line = line
        self._office = office
        self._seen = seen
        self._handed = handed
        self._turns: dict[SlotId, dict[str, Turn]] = {}
        self._timers: dict[SlotId, asyncio.TimerHandle] = {}

    def stand(self, slot_id: SlotId, token: str) -> Turn:
        """A turn to await. Called before Redis hears of it: its answer may come later than it."""
        turn: Turn = asyncio.get_running_loop().create_future()
        self._turns.setdefault(slot_id, {})[token] = turn
        if slot_id not in self._timers:
            self._tend_in(slot_id, BEAT_S)
        return turn

    def leave(self, slot_id: SlotId, token: str) -> None:
        """Await no turn any more."""
        turns = self._turns[slot_id]
        turn = turns.pop(token)
        if turn.done() and not turn.cancelled():
            turn.exception()  # nobody has to await it
        if not turns:
            del self._turns[slot_id]
            self._timers.pop(slot_id).cancel()

    def hear(self, slot_id: SlotId, lock: bytes | None) -> bool:
        """Whether the lock was handed to somebody here, who now has the turn."""
        token, fence = token_and_fence(lock) if lock else ("", 0)
        turn = self._turns.get(slot_id, {}).get(token)
        if turn is not None and not turn.done():
            turn.set_result(fence)
        return turn is not None

    def stop(self) -> None:
        """Tend no line any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _tend_in(self, slot_id: SlotId, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timers[slot_id] = loop.call_later(seconds, self._tend, slot_id)

    def _tend(self, slot_id: SlotId) -> None:
        # It also heals a wake-up that was lost, and hands on a lock that ran out.
        tokens = [token for token, turn in self._turns[slot_id].items() if not turn.done()]
        arguments = (*keys(slot_id), self._office, self._seen(), *tokens)
        answer = self._line.send("EVAL", TEND, 3, *arguments)
        answer.add_done_callback(partial(self._tended, slot_id, self._timers[slot_id]))

    def _tended(
        self, slot_id: SlotId, timer: asyncio.TimerHandle, answer: asyncio.Future[Any]
    ) -> None:
        if self._timers.get(slot_id) is not timer:  # they all left, and others may have come
            return
        error = answer.exception()
        if error is not None:
            for turn in self._turns[slot_id].values():
                if not turn.done():
                    turn.set_exception(RedisAwayError(str(error), sent=True))
            self._tend_in(slot_id, BEAT_S)
            return
        lock, lasts_ms = answer.result()
        self._handed(slot_id, lock)
        # It may be the lock of one who died before it heard: nobody else tells when it runs out.
        self._tend_in(slot_id, min(BEAT_S, lasts_ms / 1000 + 0.002) if lasts_ms > 0 else BEAT_S)
