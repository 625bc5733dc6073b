"""The demand for the slots of draws, which open pages read again and again."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from datetime import datetime
from time import monotonic

from slotlock.domain.draws.basis import DrawId
from slotlock.domain.draws.draw import Draw
from slotlock.infrastructure.mongo.draws.wish_repository import SlotDemand, WishRepository

MAX_AGE_S = 5.0


class DemandCache:
    """Counts the demand of a draw at most once in some seconds, for all readers of this process."""

    def __init__(
        self,
        wishes: WishRepository,
        now: Callable[[], datetime],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._wishes = wishes
        self._now = now
        self._clock = clock
        # When a count began, and its task.
        self._counts: dict[DrawId, tuple[float, asyncio.Task[Sequence[SlotDemand]]]] = {}

    async def find(self, draw: Draw) -> Sequence[SlotDemand]:
        """Return the demand of some seconds ago at most. A count that failed is tried again."""
        since = self._clock() - MAX_AGE_S
        for draw_id, (began_at, task) in list(self._counts.items()):
            if began_at <= since or (task.done() and (task.cancelled() or task.exception())):
                del self._counts[draw_id]
        if draw.id not in self._counts:
            count = self._wishes.count_by_slot(draw, self._now())
            # In a context of its own: it must not inherit the deadline of its first reader.
            task = asyncio.create_task(count, context=Context())
            self._counts[draw.id] = self._clock(), task
        return await asyncio.shield(self._counts[draw.id][1])
