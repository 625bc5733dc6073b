"""The locks that only this process knows: what is left of order while Redis is away."""

import asyncio
from collections import deque

LocalGrant = asyncio.Future[bool]


class InProcessLocks:
    """First come, first served, among the callers in one process."""

    def __init__(self) -> None:
        # A slot is here while it is held, with those who wait for it.
        self._waiters: dict[str, deque[LocalGrant]] = {}

    async def acquire(self, slot_ids: tuple[str, ...], deadline: float) -> bool:
        """Whether all of them were got, one after the other, by this time of the loop."""
        got: list[str] = []
        try:
            for slot_id in slot_ids:
                if not await self._acquire_one(slot_id, deadline):
                    break
                got.append(slot_id)
        finally:
            if len(got) < len(slot_ids):
                self.release(tuple(got))
        return len(got) == len(slot_ids)

    async def _acquire_one(self, slot_id: str, deadline: float) -> bool:
        if slot_id not in self._waiters:
            self._waiters[slot_id] = deque()
            return True
        loop = asyncio.get_running_loop()
        if deadline <= loop.time():
            return False
        turn: LocalGrant = loop.create_future()
        self._waiters[slot_id].append(turn)
        timer = loop.call_at(deadline, _resolve_timeout, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.result():  # it was given in the same moment
                self.release((slot_id,))
            raise
        finally:
            timer.cancel()

    def release(self, slot_ids: tuple[str, ...]) -> None:
        """Hand each on to the first who still waits."""
        for slot_id in slot_ids:
            line = self._waiters.get(slot_id, deque())
            while line and line[0].done():
                line.popleft()
            if line:
                line.popleft().set_result(True)
            else:
                self._waiters.pop(slot_id, None)


def _resolve_timeout(grant: LocalGrant) -> None:
    if not grant.done():
        grant.set_result(False)
