"""Which faults a campaign injects, in which order and for how long: a function of its seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.faults.history import HOLDS_END
from bench.faults.injection import (
    combined_faults,
    mail_faults,
    mongo_faults,
    process_faults,
    redis_faults,
)
from bench.faults.injection.mongo_faults import ALL_KILLED
from bench.faults.injection.steps import Fault


@dataclass(frozen=True, slots=True)
class Mix:
    """Some kinds of faults, which contain one of these texts, and the pauses between them."""

    kinds: tuple[str, ...] = ("",)
    # Long enough to see in most pauses whether subscribers receive what is true.
    pause_s: tuple[float, float] = (6.0, 10.0)
    fault_s: tuple[float, float] = (3.0, 10.0)


# Kills of processes and servers that follow each other closely, each with a crowd.
MIXES = {
    "all": Mix(),
    "soak": Mix(
        (
            *("app killed", "app stopped", "worker killed", "worker stopped", "worker frozen"),
            *("Redis killed", "Redis frozen", "Redis loses", "full queue", HOLDS_END, ALL_KILLED),
            *("mail leaves", "dies after DATA"),
        ),
        pause_s=(0.5, 4.0),
        fault_s=(0.5, 4.0),
    ),
}


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A fault, its length in seconds, the pause before it, and the seed of its own choices."""

    kind: str
    seconds: float
    pause_s: float
    seed: int


def faults_of(redis_kind: str) -> dict[str, Fault]:
    """Return all faults that this topology can have, by kind."""
    return {
        **mongo_faults.FAULTS,
        **redis_faults.FAULTS_BY_KIND[redis_kind],
        **process_faults.FAULTS,
        **mail_faults.FAULTS,
        **combined_faults.FAULTS,
    }


class Schedule:
    """An endless sequence of faults of a mix: every kind once in random order, then again.

    With `only`, the kinds are those that contain one of these texts.
    """

    def __init__(
        self, seed: int, redis_kind: str, only: Sequence[str] = (), mix: str = "all"
    ) -> None:
        self._rng, self._mix = random.Random(f"{seed}:{redis_kind}:faults"), MIXES[mix]
        texts = only or self._mix.kinds
        self.kinds = [kind for kind in faults_of(redis_kind) if any(text in kind for text in texts)]
        self._remaining: list[str] = []

    def next(self) -> PlannedFault:
        """Return the next fault, of which at least one kind must be possible."""
        if not self._remaining:
            self._remaining = self._rng.sample(self.kinds, len(self.kinds))
        return PlannedFault(
            self._remaining.pop(),
            self._rng.uniform(*self._mix.fault_s),
            self._rng.uniform(*self._mix.pause_s),
            self._rng.randrange(2**32),
        )

    def remove(self, kind: str) -> None:
        """Never plan this kind again."""
        self.kinds = [each for each in self.kinds if each != kind]
        self._remaining = [each for each in self._remaining if each != kind]
