"""What a simulation prints while it runs: each step on a line, or how far it is."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

from slotlock.simulation.model.attempts import BOOKED, FAILED, LOST, BookingAttempt

TERMINAL_INTERVAL_S, PLAIN_INTERVAL_S = 0.1, 1.0
CLEAR_LINE = "\r\x1b[K"
OUTCOME_TEXTS = {
    "Locked": "another request holds the lock",
    "NotYetOpen": "the campaign is not open yet",
    "QueueFull": "the queue is full",
    LOST: "the ticket is lost",
    FAILED: "the ticket failed",
    "SlotFull": "no place is left",
    "AlreadyBooked": "the user already has a place",
}


@contextlib.asynccontextmanager
async def show_progress(render: Callable[[], str], *, enabled: bool) -> AsyncIterator[None]:
    """Show the rendered line periodically, and once more at the end."""
    if not enabled:
        yield
        return
    is_terminal = sys.stdout.isatty()

    def show() -> None:
        print(
            f"{CLEAR_LINE}{render()}" if is_terminal else render(), end="" if is_terminal else "\n"
        )
        sys.stdout.flush()

    async def redraw() -> None:
        while True:
            await asyncio.sleep(TERMINAL_INTERVAL_S if is_terminal else PLAIN_INTERVAL_S)
            show()

    task = asyncio.create_task(redraw())
    try:
        yield
    finally:
        task.cancel()
        show()
        if is_terminal:
            print(flush=True)


class StepPrinter:
    """Prints each step, or nothing if the simulation is too large."""

    def __init__(self, *, enabled: bool, name_slots: bool) -> None:
        self._enabled = enabled
        self._name_slots = name_slots

    def print_sent(self, attempt: BookingAttempt) -> None:
        """Print that a user requests a slot for the first time."""
        self._print(f"{attempt.user.name} requests {attempt.slot.title}")

    def print_queued(self, attempt: BookingAttempt, position: int | None) -> None:
        """Print that a user has a ticket."""
        where = "in the queue" if position is None else f"number {position} in the queue"
        self._print(f"{self._label(attempt)}: {where}")

    def print_response(self, attempt: BookingAttempt, retry_after_ms: int | None) -> None:
        """Print the last response of an attempt and the delay of its retry, if any."""
        if attempt.outcome == BOOKED:
            self._print(f"{attempt.user.name} has {attempt.slot.title}")
            return
        explanation = OUTCOME_TEXTS.get(attempt.last_response)
        text = f"{attempt.last_response}, {explanation}" if explanation else attempt.last_response
        retry = "" if retry_after_ms is None else f"; retry in {retry_after_ms} ms"
        self._print(f"{self._label(attempt)}: {text}{retry}")

    def print_no_response(self, attempt: BookingAttempt, reason: str) -> None:
        """Print that a request got no response."""
        self._print(f"{self._label(attempt)}: no response ({reason}); retry with the same key")

    def _label(self, attempt: BookingAttempt) -> str:
        if self._name_slots:
            return f"{attempt.user.name} at {attempt.slot.title}"
        return attempt.user.name

    def _print(self, line: str) -> None:
        if self._enabled:
            print(line, flush=True)
