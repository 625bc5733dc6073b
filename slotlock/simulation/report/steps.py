"""Who asks for what and what they are told, a line a step, as a bystander would tell it."""

from slotlock.simulation.model.attempts import BOOKED, FAILED, LOST, BookingAttempt

OUTCOME_TEXTS = {
    "Locked": "somebody else is being served",
    "NotYetOpen": "it does not open before its time",
    "QueueFull": "the queue takes nobody now",
    LOST: "the ticket was lost",
    FAILED: "the ticket was set aside",
    "SlotFull": "no place is left",
    "AlreadyBooked": "they have a place already",
}


class StepPrinter:
    """Prints each step, or nothing of a run that is too large for it."""

    def __init__(self, *, enabled: bool, name_slots: bool) -> None:
        self._enabled = enabled
        self._name_slots = name_slots

    def print_sent(self, attempt: BookingAttempt) -> None:
        """Somebody asks for the first time."""
        self._print(f"{attempt.user.name} asks for {attempt.slot.title}")

    def print_queued(self, attempt: BookingAttempt, position: int | None) -> None:
        """Somebody has a ticket."""
        where = "in the queue" if position is None else f"number {position} in the queue"
        self._print(f"{self._label(attempt)}: {where}")

    def print_response(self, attempt: BookingAttempt, retry_after_ms: int | None) -> None:
        """Somebody was told something; in so many ms they ask again."""
        if attempt.outcome == BOOKED:
            self._print(f"{attempt.user.name} has {attempt.slot.title}")
            return
        words = OUTCOME_TEXTS.get(attempt.last_response)
        what = f"{attempt.last_response}, {words}" if words else attempt.last_response
        again = "" if retry_after_ms is None else f"; again in {retry_after_ms} ms"
        self._print(f"{self._label(attempt)}: {what}{again}")

    def print_no_response(self, attempt: BookingAttempt, reason: str) -> None:
        """Somebody asked in vain."""
        self._print(f"{self._label(attempt)}: no answer ({reason}); again with the same key")

    def _label(self, attempt: BookingAttempt) -> str:
        return (
            f"{attempt.user.name} at {attempt.slot.title}"
            if self._name_slots
            else attempt.user.name
        )

    def _print(self, line: str) -> None:
        if self._enabled:
            print(line, flush=True)
