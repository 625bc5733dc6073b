"""The rush: at the opening everybody asks at once, again until what they are told is final."""

import asyncio
import random
import secrets
from collections.abc import Sequence

from slotlock.api.simulation.clock import Clock
from slotlock.api.simulation.documents import BOOK
from slotlock.api.simulation.http import Server
from slotlock.api.simulation.ledger import Ask, Ledger, Person, Slot, Told
from slotlock.api.simulation.plan import By, Plan, UnreachedError
from slotlock.api.simulation.steps import Steps
from slotlock.api.simulation.tickets import Tickets

WAIT_MS = {By.LOCK: 0, By.WAIT: 20_000, By.QUEUE: 0}
# After the first failure, then twice as long each time: a server that comes back is not met by
# thousands who knock ten times a second.
AGAIN_AFTER_S, AGAIN_AFTER_AT_MOST_S = 0.1, 2.0
# Three times as long as anybody waits for their turn: then the rest will not be answered, either.
STALLED_S = 60.0


def wishes(plan: Plan, crowd: Sequence[Person], slots: Sequence[Slot]) -> list[Ask]:
    """Who asks for what, spread evenly: each for the slots that follow their own number."""
    asks = [
        Ask(person, slots[(number + turn) % plan.slots], secrets.token_urlsafe(12))
        for number, person in enumerate(crowd)
        for turn in range(plan.asks)
    ]
    random.Random(plan.seed).shuffle(asks)  # noqa: S311  (an order, not a secret)
    return asks


class Rush:
    """Everybody at once."""

    def __init__(
        self,
        plan: Plan,
        server: Server,
        ledger: Ledger,
        clock: Clock,
        steps: Steps,
        tickets: Tickets | None,
    ) -> None:
        self._wait_ms = WAIT_MS[plan.by]
        self._server = server
        self._ledger = ledger
        self._clock = clock
        self._steps = steps
        self._tickets = tickets
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Wait for the opening, then until all are answered or nobody heard news for a minute.

        Errors: SimulationError.
        """
        everybody = {asyncio.create_task(self._serve(ask)) for ask in self._ledger.asks}
        waiting = everybody
        try:
            await self._clock.opening()
            self._opened.set()
            while waiting and not self._stalled():
                done, waiting = await asyncio.wait(
                    waiting, timeout=1.0, return_when=asyncio.FIRST_EXCEPTION
                )
                for task in done:
                    task.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*everybody, return_exceptions=True)

    def _stalled(self) -> bool:
        return self._clock.now() - self._ledger.last_news_at > STALLED_S

    async def _serve(self, ask: Ask) -> None:
        await self._opened.wait()
        self._ledger.note_asked(ask, self._clock.now())
        self._steps.asks(ask)
        again_s = AGAIN_AFTER_S
        while True:
            try:
                told = await self._told(ask)
            except UnreachedError as error:
                self._ledger.note_unanswered(error.kind)
                self._steps.unanswered(ask, str(error))
                await asyncio.sleep(again_s)
                again_s = min(again_s * 2, AGAIN_AFTER_AT_MOST_S)
                continue
            again_s = AGAIN_AFTER_S
            again_ms = self._ledger.note_told(ask, told, self._clock.now())
            self._steps.told(ask, again_ms)
            if again_ms is None:
                return
            await asyncio.sleep(again_ms / 1000)

    async def _told(self, ask: Ask) -> Told:
        """What one send of an ask comes to. Errors: UnreachedError, SimulationError."""
        asked = {"slotId": ask.slot.id, "idempotencyKey": ask.key, "waitMs": self._wait_ms}
        if self._tickets is not None:
            return await self._tickets.ask(ask, asked)
        told: Told = await self._server.ask(BOOK, ask.person.token, input=asked)
        return told
