"""The rush: at the opening all users book at once, and retry until their response is final."""

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
from slotlock.simulation.model.plan import NoResponseError, SimulationConfig
from slotlock.simulation.report.progress import StepPrinter
from slotlock.simulation.tickets import TicketClient

# Exponential backoff, so that a server that restarts does not meet thousands of retries at once.
RETRY_DELAY_S, MAX_RETRY_DELAY_S = 0.1, 2.0
# Three times the longest wait for a lock: after that, no response will arrive.
STALL_TIMEOUT_S = 60.0


def plan_attempts(
    config: SimulationConfig, users: Sequence[SimulatedUser], slots: Sequence[SimulatedSlot]
) -> list[BookingAttempt]:
    """Return the attempts in a random order; user number i requests slot i and its successors."""
    attempts = [
        BookingAttempt(user, slots[(number + offset) % len(slots)], secrets.token_urlsafe(12))
        for number, user in enumerate(users)
        for offset in range(config.attempts)
    ]
    random.Random(config.seed).shuffle(attempts)  # noqa: S311  (an order, not a secret)
    return attempts


class Rush:
    """Runs all attempts at once."""

    def __init__(
        self,
        config: SimulationConfig,
        client: GraphQLClient,
        attempt_log: AttemptLog,
        clock: Clock,
        step_printer: StepPrinter,
        ticket_client: TicketClient | None,
    ) -> None:
        self._wait_ms = config.mode.wait_ms
        self._client = client
        self._attempt_log = attempt_log
        self._clock = clock
        self._step_printer = step_printer
        self._ticket_client = ticket_client
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Wait for the opening, then until all responses are final or a minute has no progress.

        Raises:
            SimulationError: The server rejects a request of the simulation.
        """
        tasks = {
            asyncio.create_task(self._run_attempt(attempt))
            for attempt in self._attempt_log.attempts
        }
        pending = tasks
        try:
            await self._clock.wait_for_opening()
            self._opened.set()
            while pending and not self._is_stalled():
                done, pending = await asyncio.wait(
                    pending, timeout=1.0, return_when=asyncio.FIRST_EXCEPTION
                )
                for task in done:
                    task.result()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _is_stalled(self) -> bool:
        return self._clock.now() - self._attempt_log.last_progress_at > STALL_TIMEOUT_S

    async def _run_attempt(self, attempt: BookingAttempt) -> None:
        await self._opened.wait()
        self._attempt_log.record_sent(attempt, self._clock.now())
        self._step_printer.print_sent(attempt)
        retry_delay_s = RETRY_DELAY_S
        while True:
            try:
                response = await self._send(attempt)
            except NoResponseError as error:
                self._attempt_log.record_no_response(error.kind)
                self._step_printer.print_no_response(attempt, str(error))
                await asyncio.sleep(retry_delay_s)
                retry_delay_s = min(retry_delay_s * 2, MAX_RETRY_DELAY_S)
                continue
            retry_delay_s = RETRY_DELAY_S
            retry_after_ms = self._attempt_log.record_response(attempt, response, self._clock.now())
            self._step_printer.print_response(attempt, retry_after_ms)
            if retry_after_ms is None:
                return
            await asyncio.sleep(retry_after_ms / 1000)

    async def _send(self, attempt: BookingAttempt) -> Response:
        """Send an attempt once and return its response; raises NoResponseError."""
        booking_input = {
            "slotId": attempt.slot.id,
            "idempotencyKey": attempt.idempotency_key,
            "waitMs": self._wait_ms,
        }
        if self._ticket_client is not None:
            return await self._ticket_client.request_booking(attempt, booking_input)
        response: Response = await self._client.query(BOOK, attempt.user.token, input=booking_input)
        return response
