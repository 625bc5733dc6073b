"""Prints each step of a small simulation on a line."""

from slotlock.simulation.model.attempts import BOOKED, FAILED, LOST, BookingAttempt

OUTCOME_TEXTS = {
    "Locked": "another request holds the lock",
    "NotYetOpen": "the campaign is not open yet",
    "QueueFull": "the queue is full",
    LOST: "the ticket is lost",
    FAILED: "the ticket failed",
    "SlotFull": "no place is left",
    "AlreadyBooked": "the user already has a place",
}


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
