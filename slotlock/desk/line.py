"""Serving instead of refusing: callers who wait for one slot are served together, in order.

All who wait in this process stand in one line a slot. Whoever serves it takes the lock once, looks
once, decides for each in order of arrival, writes once and answers each.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slotlock.domain.outcomes import Locked
from slotlock.domain.slots import SlotId

LARGEST_BATCH = 200

# Waits for its turn for so many seconds, calls those who stand in front and serves them; the
# outcome of each, or None when its turn did not come.
Clerk = Callable[[float, Callable[[], list[Any]]], Awaitable[list[Any] | None]]


@dataclass(slots=True, eq=False)
class _Place:
    request: Any
    until: float
    answer: asyncio.Future[Any]


class Lines:
    """The lines of this process, one for each slot that somebody waits for."""

    def __init__(self) -> None:
        self._lines: dict[SlotId, deque[_Place]] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def stand(self, slot_id: SlotId, request: Any, wait_s: float, clerk: Clerk) -> Any:
        """The outcome of a request in its turn; None when the turn does not come in time.

        A caller who leaves gives up their place, unless it was their turn already.
        """
        loop = asyncio.get_running_loop()
        place = _Place(request, loop.time() + wait_s, loop.create_future())
        line = self._lines.get(slot_id)
        if line is None:
            line = self._lines[slot_id] = deque()
            serving = asyncio.create_task(self._serve(slot_id, line, clerk))
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)
        line.append(place)
        try:
            await asyncio.wait([place.answer], timeout=wait_s)
        except asyncio.CancelledError:
            if place in line:
                line.remove(place)
            raise
        if not place.answer.done() and place in line:
            line.remove(place)
            return None
        return await place.answer

    async def _serve(self, slot_id: SlotId, line: deque[_Place], clerk: Clerk) -> None:
        while line:
            await self._serve_batch(line, clerk)
        del self._lines[slot_id]

    async def _serve_batch(self, line: deque[_Place], clerk: Clerk) -> None:
        called: list[_Place] = []

        def call() -> list[Any]:
            called.extend(line.popleft() for _ in range(min(len(line), LARGEST_BATCH)))
            return [place.request for place in called]

        loop = asyncio.get_running_loop()
        longest = max(place.until for place in line) - loop.time()
        try:
            outcomes = await clerk(max(longest, 0.0), call)
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            for place in called or _all_of(line):
                _answer(place, error)
            return
        if outcomes is None:
            # Nobody's time is left; each leaves by themselves, and is told the truth outside.
            for place in _all_of(line):
                _answer(place, None)
            return
        again = []
        for place, outcome in zip(called, outcomes, strict=True):
            if isinstance(outcome, Locked) and loop.time() < place.until:
                again.append(place)
            else:
                _answer(place, outcome)
        line.extendleft(reversed(again))


def _all_of(line: deque[_Place]) -> list[_Place]:
    places = list(line)
    line.clear()
    return places


def _answer(place: _Place, outcome: Any) -> None:
    if place.answer.done():
        return
    if isinstance(outcome, Exception):
        place.answer.set_exception(outcome)
    else:
        place.answer.set_result(outcome)
