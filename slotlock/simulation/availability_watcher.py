"""Watches the live availability of all slots."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from slotlock.simulation.client.documents import AVAILABILITY
from slotlock.simulation.client.websocket import WebSocketClient
from slotlock.simulation.model.attempts import AttemptLog, Clock, SimulatedSlot
from slotlock.simulation.model.plan import NoResponseError, SimulationError

# The server's limit of slots in one subscription.
MAX_SLOTS_PER_SUBSCRIPTION = 100
RECONNECT_DELAY_S = 0.2
CATCH_UP_TIMEOUT_S = 30.0


class AvailabilityWatcher:
    """The last live number of places left per slot, and their sum over time."""

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
        """Return the places left in all slots; None until each slot has a number."""
        return self._total_remaining if len(self.remaining) == len(self._slot_ids) else None

    @contextlib.asynccontextmanager
    async def watch(self, socket: WebSocketClient) -> AsyncIterator[None]:
        """Watch until the context is left; raises SimulationError if no availability arrives."""
        batches = [
            self._slot_ids[start : start + MAX_SLOTS_PER_SUBSCRIPTION]
            for start in range(0, len(self._slot_ids), MAX_SLOTS_PER_SUBSCRIPTION)
        ]
        tasks = [asyncio.create_task(self._subscribe(socket, batch)) for batch in batches]
        try:
            await self.wait_until_seen(dict.fromkeys(self._slot_ids))
            if len(self.remaining) < len(self._slot_ids):
                raise self._error or SimulationError("no live availability arrives")
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_until_seen(self, expected: dict[str, int | None]) -> None:
        """Wait until the last live numbers are these (None: any number), 30 s at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_TIMEOUT_S):
                while self._error is None and not self._matches(expected):
                    self._updated.clear()
                    await self._updated.wait()

    def _matches(self, expected: dict[str, int | None]) -> bool:
        return all(
            slot_id in self.remaining and count in (None, self.remaining[slot_id])
            for slot_id, count in expected.items()
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
        slot_id, remaining = state["slotId"], state["remaining"]
        self._total_remaining += remaining - self.remaining.get(slot_id, 0)
        self.remaining[slot_id] = remaining
        if self.places_left is not None:
            self.places_left_series.append((self._clock.now(), self._total_remaining))
        self._updated.set()
