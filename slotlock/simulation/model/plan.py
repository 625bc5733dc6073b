"""What a simulation is asked to do, and why it cannot be done."""

from dataclasses import dataclass
from enum import StrEnum

# Up to so many asks every step is printed; more would scroll past anyone.
MAX_VERBOSE_ATTEMPTS = 40


class SimulationError(Exception):
    """It cannot be carried through; the text says why in a line."""


class NoResponseError(Exception):
    """No answer came, so that nobody knows whether it was done; the kind says how it failed."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class BookingMode(StrEnum):
    """How people ask."""

    LOCK = "lock"
    WAIT = "wait"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Organizer:
    """Who opens the campaign, and where that identity comes from."""

    email: str
    password: str
    source: str


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """How many of what, where and how; `places` is per slot, `asks` per person."""

    url: str
    users: int
    slots: int
    places: int
    attempts: int
    mode: BookingMode
    seed: int

    @property
    def is_verbose(self) -> bool:
        """Whether it is small enough to print each step."""
        return self.users * self.attempts <= MAX_VERBOSE_ATTEMPTS
