"""What a simulation is asked to do, and why it cannot be done."""

from dataclasses import dataclass
from enum import StrEnum

# Up to so many asks every step is printed; more would scroll past anyone.
TOLD_IN_STEPS = 40


class SimulationError(Exception):
    """It cannot be carried through; the text says why in a line."""


class UnreachedError(Exception):
    """No answer came, so that nobody knows whether it was done; the kind says how it failed."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class By(StrEnum):
    """How people ask."""

    LOCK = "lock"
    WAIT = "wait"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Organiser:
    """Who opens the campaign, and where that identity comes from."""

    email: str
    password: str
    source: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How many of what, where and how; `places` is per slot, `asks` per person."""

    url: str
    people: int
    slots: int
    places: int
    asks: int
    by: By
    seed: int

    @property
    def in_steps(self) -> bool:
        """Whether it is small enough to print each step."""
        return self.people * self.asks <= TOLD_IN_STEPS
