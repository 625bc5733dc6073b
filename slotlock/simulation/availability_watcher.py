"""Places left as they are told live, to anybody who watches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from slotlock.simulation.client.documents import AVAILABILITY
from slotlock.simulation.client.websocket import WebSocketClient
from slotlock.simulation.model.attempts import AttemptLog, Clock, SimulatedSlot
from slotlock.simulation.model.plan import NoResponseError, SimulationError

# Of the server: slots that one subscription may name.
MAX_SLOTS_PER_SUBSCRIPTION = 100
RECONNECT_DELAY_S = 0.2
CATCH_UP_TIMEOUT_S = 30.0


class AvailabilityWatcher:
    """What was heard last of each slot, and places left in all over time."""

    def __init__(
        self, slots: Sequence[SimulatedSlot], clock: Clock, attempt_log: AttemptLog
    ) -> None:
        self.remaining: dict[str, int] = {}
        self.places_left_series: list[tuple[float, int]] = []
        self._slot_ids = [slot.id for slot in slots]
        self._clock = clock
        self._attempt_log = attempt_log
        self._total_remaining = 0
        self._updated = asyncio.Event()
        self._error: SimulationError | None = None

    @property
    def places_left(self) -> int | None:
        """In all slots; None before each was heard of."""
        return self._total_remaining if len(self.remaining) == len(self._slot_ids) else None

    @contextlib.asynccontextmanager
    async def watch(self, socket: WebSocketClient) -> AsyncIterator[None]:
        """Watch until it is left. Errors: SimulationError if nothing is to be heard."""
        parts = [
            self._slot_ids[at : at + MAX_SLOTS_PER_SUBSCRIPTION]
            for at in range(0, len(self._slot_ids), MAX_SLOTS_PER_SUBSCRIPTION)
        ]
        following = [asyncio.create_task(self._subscribe(socket, part)) for part in parts]
        try:
            await self.wait_until_seen(dict.fromkeys(self._slot_ids))
            if len(self.remaining) < len(self._slot_ids):
                raise self._error or SimulationError("no live availability is to be heard")
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    async def wait_until_seen(self, expected: dict[str, int | None]) -> None:
        """Wait until this is what was heard last (None: anything), 30 s at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_TIMEOUT_S):
                while self._error is None and not self._matches(expected):
                    self._updated.clear()
                    await self._updated.wait()

    def _matches(self, expected: dict[str, int | None]) -> bool:
        return all(
            slot_id in self.remaining and left in (None, self.remaining[slot_id])
            for slot_id, left in expected.items()
        )

    async def _subscribe(self, socket: WebSocketClient, ids: list[str]) -> None:
        while True:
            try:
                await socket.subscribe(AVAILABILITY, self._on_availability, ids=ids)
            except NoResponseError as error:
                self._attempt_log.record_no_response(error.kind)
            except SimulationError as error:
                self._error = error
                self._updated.set()
                return
            await asyncio.sleep(RECONNECT_DELAY_S)

    def _on_availability(self, state: dict[str, Any]) -> None:
        slot_id, left = state["slotId"], state["remaining"]
        self._total_remaining += left - self.remaining.get(slot_id, 0)
        self.remaining[slot_id] = left
        if self.places_left is not None:
            self.places_left_series.append((self._clock.now(), self._total_remaining))
        self._updated.set()
