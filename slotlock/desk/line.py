"""Serving instead of refusing: callers who wait for one slot are served together, in order.

All who wait in this process stand in one line a slot. Whoever serves it takes the lock once, looks
once, decides for each in order of arrival, writes once and answers each.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from slotlock.domain.bookings import SlotId
from slotlock.domain.refusals import Locked

LARGEST_BATCH = 200
# The longest that anybody may wait, by the contract with clients.
LONGEST_WAIT_S = 20.0

# Waits for its turn for so many seconds, calls those who stand in front and serves them; the
# outcome of each, or None when its turn did not come.
Clerk = Callable[[float, Callable[[], list[Any]]], Coroutine[Any, Any, list[Any] | None]]


@dataclass(slots=True, eq=False)
class _Place:
    request: Any
    until: float
    answer: asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class _Line:
    places: deque[_Place] = field(default_factory=deque)
    # Waits for the line's turn, and is sent home when nobody stands there any more.
    clerk: asyncio.Task[list[Any] | None] | None = None

    def leave(self, place: _Place) -> bool:
        """Whether the place was still in line, and is no longer."""
        if place not in self.places:
            return False
        self.places.remove(place)
        if not self.places and self.clerk is not None:
            self.clerk.cancel()
        return True


class Lines:
    """The lines of this process, one for each slot that somebody waits for."""

    def __init__(self) -> None:
        self._lines: dict[SlotId, _Line] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def stand(self, slot_id: SlotId, request: Any, wait_s: float, clerk: Clerk) -> Any:
        """The outcome of a request in its turn; None when the turn does not come in time.

        A caller who leaves gives up their place, unless it was their turn already.
        """
        loop = asyncio.get_running_loop()
        place = _Place(request, loop.time() + wait_s, loop.create_future())
        line = self._lines.get(slot_id)
        if line is None:
            line = self._lines[slot_id] = _Line()
            serving = asyncio.create_task(self._serve(slot_id, line, clerk))
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)
        line.places.append(place)
        try:
            await asyncio.wait([place.answer], timeout=wait_s)
        except asyncio.CancelledError:
            line.leave(place)
            raise
        if not place.answer.done() and line.leave(place):
            return None
        return await place.answer

    async def _serve(self, slot_id: SlotId, line: _Line, clerk: Clerk) -> None:
        try:
            while line.places:
                await self._serve_batch(line, clerk)
        finally:
            del self._lines[slot_id]

    async def _serve_batch(self, line: _Line, clerk: Clerk) -> None:
        called: list[_Place] = []

        def call() -> list[Any]:
            line.clerk = None
            called.extend(
                line.places.popleft() for _ in range(min(len(line.places), LARGEST_BATCH))
            )
            return [place.request for place in called]

        # Whoever comes later may be more patient than all who stand here now.
        line.clerk = asyncio.create_task(clerk(LONGEST_WAIT_S, call))
        try:
            outcomes = await line.clerk
        except asyncio.CancelledError:
            outcomes = None  # sent home; nobody was called
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            for place in called or _all_of(line.places):
                _answer(place, error)
            return
        finally:
            line.clerk = None
        self._answer_all(line, called, outcomes)

    def _answer_all(self, line: _Line, called: list[_Place], outcomes: list[Any] | None) -> None:
        # Whose turn did not come is told so outside, when their own time is over.
        again, now = [], asyncio.get_running_loop().time()
        for place, outcome in zip(called, outcomes or (), strict=False):
            if isinstance(outcome, Locked) and now < place.until:
                again.append(place)
            else:
                _answer(place, outcome)
        line.places.extendleft(reversed(again))


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
