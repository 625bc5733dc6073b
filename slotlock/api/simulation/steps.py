"""Who asks for what and what they are told, a line a step, as a bystander would tell it."""

from slotlock.api.simulation.ledger import BOOKED, LOST, SET_ASIDE, Ask

IN_WORDS = {
    "Locked": "somebody else is being served",
    "NotYetOpen": "it does not open before its time",
    "QueueFull": "the queue takes nobody now",
    LOST: "the ticket was lost",
    SET_ASIDE: "the ticket was set aside",
    "SlotFull": "no place is left",
    "AlreadyBooked": "they have a place already",
}


class Steps:
    """Prints each step, or nothing of a run that is too large for it."""

    def __init__(self, *, shown: bool, name_slots: bool) -> None:
        self._shown = shown
        self._name_slots = name_slots

    def asks(self, ask: Ask) -> None:
        """Somebody asks for the first time."""
        self._say(f"{ask.person.name} asks for {ask.slot.title}")

    def queues(self, ask: Ask, place: int | None) -> None:
        """Somebody has a ticket."""
        where = "in the queue" if place is None else f"number {place} in the queue"
        self._say(f"{self._who(ask)}: {where}")

    def told(self, ask: Ask, again_ms: int | None) -> None:
        """Somebody was told something; in so many ms they ask again."""
        if ask.outcome == BOOKED:
            self._say(f"{ask.person.name} has {ask.slot.title}")
            return
        words = IN_WORDS.get(ask.last_told)
        what = f"{ask.last_told}, {words}" if words else ask.last_told
        again = "" if again_ms is None else f"; again in {again_ms} ms"
        self._say(f"{self._who(ask)}: {what}{again}")

    def unanswered(self, ask: Ask, reason: str) -> None:
        """Somebody asked in vain."""
        self._say(f"{self._who(ask)}: no answer ({reason}); again with the same key")

    def _who(self, ask: Ask) -> str:
        return f"{ask.person.name} at {ask.slot.title}" if self._name_slots else ask.person.name

    def _say(self, line: str) -> None:
        if self._shown:
            print(line, flush=True)
