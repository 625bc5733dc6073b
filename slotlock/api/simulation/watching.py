"""Places left as they are told live, to anybody who watches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from slotlock.api.simulation.clock import Clock
from slotlock.api.simulation.documents import AVAILABILITY
from slotlock.api.simulation.ledger import Ledger, Slot
from slotlock.api.simulation.plan import SimulationError, UnreachedError
from slotlock.api.simulation.sockets import Socket

# Of the server: slots that one subscription may name.
MOST_SLOTS = 100
AGAIN_AFTER_S = 0.2
HEARD_WITHIN_S = 30.0


class Watch:
    """What was heard last of each slot, and places left in all over time."""

    def __init__(self, slots: Sequence[Slot], clock: Clock, ledger: Ledger) -> None:
        self.remaining: dict[str, int] = {}
        self.points: list[tuple[float, int]] = []
        self._ids = [slot.id for slot in slots]
        self._clock = clock
        self._ledger = ledger
        self._left = 0
        self._news = asyncio.Event()
        self._failed: SimulationError | None = None

    @property
    def places_left(self) -> int | None:
        """In all slots; None before each was heard of."""
        return self._left if len(self.remaining) == len(self._ids) else None

    @contextlib.asynccontextmanager
    async def through(self, socket: Socket) -> AsyncIterator[None]:
        """Watch until it is left. Errors: SimulationError if nothing is to be heard."""
        parts = [self._ids[at : at + MOST_SLOTS] for at in range(0, len(self._ids), MOST_SLOTS)]
        following = [asyncio.create_task(self._follow(socket, part)) for part in parts]
        try:
            await self.heard(dict.fromkeys(self._ids))
            if len(self.remaining) < len(self._ids):
                raise self._failed or SimulationError("no live availability is to be heard")
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    async def heard(self, truth: dict[str, int | None]) -> None:
        """Wait until this is what was heard last (None: anything), 30 s at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARD_WITHIN_S):
                while self._failed is None and not self._agrees(truth):
                    self._news.clear()
                    await self._news.wait()

    def _agrees(self, truth: dict[str, int | None]) -> bool:
        return all(
            slot_id in self.remaining and left in (None, self.remaining[slot_id])
            for slot_id, left in truth.items()
        )

    async def _follow(self, socket: Socket, ids: list[str]) -> None:
        while True:
            try:
                await socket.follow(AVAILABILITY, self._hear, ids=ids)
            except UnreachedError as error:
                self._ledger.note_unanswered(error.kind)
            except SimulationError as error:
                self._failed = error
                self._news.set()
                return
            await asyncio.sleep(AGAIN_AFTER_S)

    def _hear(self, state: dict[str, Any]) -> None:
        slot_id, left = state["slotId"], state["remaining"]
        self._left += left - self.remaining.get(slot_id, 0)
        self.remaining[slot_id] = left
        if self.places_left is not None:
            self.points.append((self._clock.now(), self._left))
        self._news.set()
