"""What everybody asked and was told, with the times: what the end is held against."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slotlock.api.simulation.http import DROPPED, SERVER_ERROR
from slotlock.api.simulation.sockets import BROKEN

BOOKED = "Booked"
LOST, SET_ASIDE = "LOST", "SET_ASIDE"
# Told to ask again, after so many ms unless the answer says how many.
AGAIN_AFTER_MS = {"Locked": 100, "QueueFull": 100, "NotYetOpen": 20, LOST: 0}
RETRIES = (*AGAIN_AFTER_MS, DROPPED, SERVER_ERROR, BROKEN)

Told = Mapping[str, Any]


@dataclass(slots=True)
class Person:
    """Somebody in the crowd."""

    name: str
    email: str
    user_id: str = ""
    token: str = ""
    refresh_token: str = ""


@dataclass(frozen=True, slots=True)
class Slot:
    """Something they ask for."""

    id: str
    title: str


@dataclass(slots=True)
class Ask:
    """One person's wish for one slot; times are seconds since the opening."""

    person: Person
    slot: Slot
    key: str
    asked_at: float | None = None
    first_at: float | None = None
    final_at: float | None = None
    outcome: str | None = None
    booking_id: str | None = None
    ticket_id: str | None = None
    last_told: str = "nothing"
    # Final states of one ticket that were heard after the first.
    finals_too_many: int = 0


@dataclass(slots=True)
class Ledger:
    """All the asks, and why some were sent again."""

    asks: list[Ask]
    again: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    last_final_at: float = 0.0
    # When anybody was last told something that brings them nearer to their final answer.
    last_news_at: float = 0.0

    def note_asked(self, ask: Ask, at: float) -> None:
        """Somebody asked for the first time."""
        ask.asked_at = at
        self.asked += 1

    def note_unanswered(self, kind: str) -> None:
        """No answer came; it is asked again."""
        self.again[kind] += 1

    def note_news(self, ask: Ask, at: float) -> None:
        """Somebody stands in line, or has a better place there."""
        if ask.first_at is None:
            ask.first_at = at
        self.last_news_at = at

    def note_told(self, ask: Ask, told: Told, at: float) -> int | None:
        """Somebody was told something; after how many ms they ask again, None if it is final."""
        name = ask.last_told = told["__typename"]
        if ask.first_at is None:
            ask.first_at = at
        if name in AGAIN_AFTER_MS:
            self.again[name] += 1
            return int(told.get("retryAfterMs", AGAIN_AFTER_MS[name]))
        ask.outcome, ask.final_at, self.last_final_at, self.last_news_at = name, at, at, at
        ask.booking_id = told["booking"]["id"] if name == BOOKED else None
        self.outcomes[name] += 1
        return None

    @property
    def answered(self) -> int:
        """How many asks have their final answer."""
        return self.outcomes.total()

    @property
    def booked(self) -> int:
        """How many of them got a place."""
        return self.outcomes[BOOKED]
