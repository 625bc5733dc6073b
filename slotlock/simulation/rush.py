"""The rush: at the opening everybody asks at once, again until what they are told is final."""

import asyncio
import random
import secrets
from collections.abc import Sequence

from slotlock.simulation.client.documents import BOOK
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.model.attempts import (
    AttemptLog,
    BookingAttempt,
    Clock,
    Response,
    SimulatedSlot,
    SimulatedUser,
)
from slotlock.simulation.model.plan import BookingMode, NoResponseError, SimulationConfig
from slotlock.simulation.report.steps import StepPrinter
from slotlock.simulation.tickets import TicketClient

WAIT_MS = {BookingMode.LOCK: 0, BookingMode.WAIT: 20_000, BookingMode.QUEUE: 0}
# After the first failure, then twice as long each time: a server that comes back is not met by
# thousands who knock ten times a second.
RETRY_DELAY_S, MAX_RETRY_DELAY_S = 0.1, 2.0
# Three times as long as anybody waits for their turn: then the rest will not be answered, either.
STALL_TIMEOUT_S = 60.0


def plan_attempts(
    config: SimulationConfig, users: Sequence[SimulatedUser], slots: Sequence[SimulatedSlot]
) -> list[BookingAttempt]:
    """Who asks for what, spread evenly: each for the slots that follow their own number."""
    asks = [
        BookingAttempt(person, slots[(number + turn) % config.slots], secrets.token_urlsafe(12))
        for number, person in enumerate(users)
        for turn in range(config.attempts)
    ]
    random.Random(config.seed).shuffle(asks)  # noqa: S311  (an order, not a secret)
    return asks


class Rush:
    """Everybody at once."""

    def __init__(
        self,
        config: SimulationConfig,
        client: GraphQLClient,
        attempt_log: AttemptLog,
        clock: Clock,
        step_printer: StepPrinter,
        ticket_client: TicketClient | None,
    ) -> None:
        self._wait_ms = WAIT_MS[config.mode]
        self._client = client
        self._attempt_log = attempt_log
        self._clock = clock
        self._step_printer = step_printer
        self._ticket_client = ticket_client
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Wait for the opening, then until all are answered or nobody heard news for a minute.

        Errors: SimulationError.
        """
        everybody = {
            asyncio.create_task(self._run_attempt(ask)) for ask in self._attempt_log.attempts
        }
        waiting = everybody
        try:
            await self._clock.wait_for_opening()
            self._opened.set()
            while waiting and not self._is_stalled():
                done, waiting = await asyncio.wait(
                    waiting, timeout=1.0, return_when=asyncio.FIRST_EXCEPTION
                )
                for task in done:
                    task.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*everybody, return_exceptions=True)

    def _is_stalled(self) -> bool:
        return self._clock.now() - self._attempt_log.last_progress_at > STALL_TIMEOUT_S

    async def _run_attempt(self, attempt: BookingAttempt) -> None:
        await self._opened.wait()
        self._attempt_log.record_sent(attempt, self._clock.now())
        self._step_printer.print_sent(attempt)
        again_s = RETRY_DELAY_S
        while True:
            try:
                told = await self._send(attempt)
            except NoResponseError as error:
                self._attempt_log.record_no_response(error.kind)
                self._step_printer.print_no_response(attempt, str(error))
                await asyncio.sleep(again_s)
                again_s = min(again_s * 2, MAX_RETRY_DELAY_S)
                continue
            again_s = RETRY_DELAY_S
            again_ms = self._attempt_log.record_response(attempt, told, self._clock.now())
            self._step_printer.print_response(attempt, again_ms)
            if again_ms is None:
                return
            await asyncio.sleep(again_ms / 1000)

    async def _send(self, attempt: BookingAttempt) -> Response:
        """What one send of an ask comes to. Errors: UnreachedError, SimulationError."""
        asked = {
            "slotId": attempt.slot.id,
            "idempotencyKey": attempt.idempotency_key,
            "waitMs": self._wait_ms,
        }
        if self._ticket_client is not None:
            return await self._ticket_client.request_booking(attempt, asked)
        told: Response = await self._client.query(BOOK, attempt.user.token, input=asked)
        return told
