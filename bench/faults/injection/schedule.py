"""Which faults a campaign injects, in which order and for how long: a function of its seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bench.faults.injection import mongo_faults, paired_faults, process_faults, redis_faults
from bench.faults.injection.steps import Fault

FAULT_S = (3.0, 10.0)
# Long enough to see in most pauses whether subscribers receive what is true.
PAUSE_S = (6.0, 10.0)


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
        **paired_faults.FAULTS,
    }


class Schedule:
    """An endless sequence of faults: every kind once in random order, then again.

    With `only`, the kinds are those that contain one of these texts.
    """

    def __init__(self, seed: int, redis_kind: str, only: Sequence[str] = ()) -> None:
        self._rng = random.Random(f"{seed}:{redis_kind}:faults")
        self.kinds = [
            kind for kind in faults_of(redis_kind) if not only or any(text in kind for text in only)
        ]
        self._remaining: list[str] = []

    def next(self) -> PlannedFault:
        """Return the next fault, of which at least one kind must be possible."""
        if not self._remaining:
            self._remaining = self._rng.sample(self.kinds, len(self.kinds))
        return PlannedFault(
            self._remaining.pop(),
            self._rng.uniform(*FAULT_S),
            self._rng.uniform(*PAUSE_S),
            self._rng.randrange(2**32),
        )

    def remove(self, kind: str) -> None:
        """Never plan this kind again."""
        self.kinds = [each for each in self.kinds if each != kind]
        self._remaining = [each for each in self._remaining if each != kind]
