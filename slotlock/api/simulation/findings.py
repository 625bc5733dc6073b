"""What a run comes to: counts, times and series, worked out once for the print, JSON and plot."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from slotlock.api.simulation.invariants import Evidence, Invariant
from slotlock.api.simulation.ledger import BOOKED, RETRIES, Ask, Ledger
from slotlock.api.simulation.plan import Plan

# Of the series over time: enough for a plot, few enough to read.
MOST_MOMENTS = 200
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class Moment:
    """How it stood so many seconds after the opening; answers are final ones, by outcome."""

    seconds: float
    asked: int
    answers: Mapping[str, int]
    places_left: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """Everything that is told of a run; CPU time is the simulation's own, during the rush."""

    plan: Plan
    campaign_id: str
    opened_at: datetime
    seconds: float
    requests: int
    cpu_seconds: float
    ledger: Ledger
    points: Sequence[tuple[float, int]]
    evidence: Evidence
    invariants: Sequence[Invariant]

    @property
    def broken(self) -> bool:
        """Whether an invariant does not hold."""
        return not all(invariant.holds for invariant in self.invariants)

    @property
    def retries(self) -> dict[str, int]:
        """How often it was asked again, by the reason."""
        return {kind: self.ledger.again[kind] for kind in RETRIES}

    @property
    def first_ms(self) -> dict[str, float]:
        """From asking to the first answer of whatever kind: percentiles, ms."""
        return percentiles([waited(ask, ask.first_at) for ask in self._begun])

    @property
    def final_ms(self) -> dict[str, float]:
        """From asking to the final answer: percentiles, ms."""
        return percentiles([waited(ask, ask.final_at) for ask in self._begun])

    @property
    def _begun(self) -> list[Ask]:
        return [ask for ask in self.ledger.asks if ask.asked_at is not None]

    def holders(self) -> dict[str, list[str]]:
        """Who has a place, by slot id, in the order of the roster."""
        names = {ask.person.user_id: ask.person.name for ask in self.ledger.asks}
        return {
            slot.id: [names.get(user, user) for _, user in truth.roster]
            for slot, truth in self.evidence.each()
        }


def waited(ask: Ask, until: float | None) -> float | None:
    """Milliseconds since the person asked, None for one who waits still."""
    return None if until is None or ask.asked_at is None else (until - ask.asked_at) * 1000


def percentiles(waits: Sequence[float | None]) -> dict[str, float]:
    """Of those waits that ended, by the nearest rank; empty if none did."""
    ended = sorted(wait for wait in waits if wait is not None)
    if not ended:
        return {}
    return {
        name: round(ended[ceil(share * len(ended)) - 1], 1) for name, share in PERCENTILES.items()
    }


def moments(run: Run) -> list[Moment]:
    """How it went, from the opening to the last answer, in at most 200 steps."""
    asked = sorted(ask.asked_at for ask in run.ledger.asks if ask.asked_at is not None)
    answers = sorted(
        (ask.final_at, ask.outcome) for ask in run.ledger.asks if ask.final_at and ask.outcome
    )
    left_at = [at for at, _ in run.points]
    count = min(MOST_MOMENTS, max(len(answers), 2))
    told: Counter[str] = Counter(dict.fromkeys(run.ledger.outcomes, 0))
    series, heard = [], 0
    for number in range(count + 1):
        at = run.seconds * number / count
        while heard < len(answers) and answers[heard][0] <= at:
            told[answers[heard][1]] += 1
            heard += 1
        known = bisect_right(left_at, at)
        left = run.points[known - 1][1] if known else None
        series.append(Moment(round(at, 4), bisect_right(asked, at), dict(told), left))
    return series


def ordered(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Booked first, then the most frequent."""
    by_count = sorted(outcomes.items(), key=lambda item: (item[0] != BOOKED, -item[1], item[0]))
    return dict(by_count)
