"""The locks that only this process knows: what is left of order while Redis is away."""

import asyncio
from collections import deque

from slotlock.domain.bookings import SlotId

Turn = asyncio.Future[bool]


class LocalLocks:
    """First come, first served, among the callers in one process."""

    def __init__(self) -> None:
        # A slot is here while it is held, with those who wait for it.
        self._lines: dict[SlotId, deque[Turn]] = {}

    async def acquire(self, slot_ids: tuple[SlotId, ...], until: float) -> bool:
        """Whether all of them were got, one after the other, by this time of the loop."""
        got: list[SlotId] = []
        try:
            for slot_id in slot_ids:
                if not await self._acquire(slot_id, until):
                    break
                got.append(slot_id)
        finally:
            if len(got) < len(slot_ids):
                self.release(tuple(got))
        return len(got) == len(slot_ids)

    async def _acquire(self, slot_id: SlotId, until: float) -> bool:
        if slot_id not in self._lines:
            self._lines[slot_id] = deque()
            return True
        loop = asyncio.get_running_loop()
        if until <= loop.time():
            return False
        turn: Turn = loop.create_future()
        self._lines[slot_id].append(turn)
        timer = loop.call_at(until, _time_is_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.result():  # it was given in the same moment
                self.release((slot_id,))
            raise
        finally:
            timer.cancel()

    def release(self, slot_ids: tuple[SlotId, ...]) -> None:
        """Hand each on to the first who still waits."""
        for slot_id in slot_ids:
            line = self._lines.get(slot_id, deque())
            while line and line[0].done():
                line.popleft()
            if line:
                line.popleft().set_result(True)
            else:
                self._lines.pop(slot_id, None)


def _time_is_up(turn: Turn) -> None:
    if not turn.done():
        turn.set_result(False)
