"""What a run comes to: counts, times and series, worked out once for the print, JSON and plot."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from slotlock.simulation.model.attempts import BOOKED, RETRY_REASONS, AttemptLog, BookingAttempt
from slotlock.simulation.model.invariants import Evidence, InvariantResult
from slotlock.simulation.model.plan import SimulationConfig

# Of the series over time: enough for a plot, few enough to read.
MAX_POINTS = 200
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class SampledPoint:
    """How it stood so many seconds after the opening; answers are final ones, by outcome."""

    seconds: float
    sent: int
    outcomes: Mapping[str, int]
    places_left: int | None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Everything that is told of a run; CPU time is the simulation's own, during the rush."""

    config: SimulationConfig
    campaign_id: str
    opened_at: datetime
    duration_s: float
    request_count: int
    cpu_seconds: float
    attempt_log: AttemptLog
    places_left_series: Sequence[tuple[float, int]]
    evidence: Evidence
    invariants: Sequence[InvariantResult]

    @property
    def has_broken_invariant(self) -> bool:
        """Whether an invariant does not hold."""
        return not all(invariant.holds for invariant in self.invariants)

    @property
    def retries(self) -> dict[str, int]:
        """How often it was asked again, by the reason."""
        return {kind: self.attempt_log.retries[kind] for kind in RETRY_REASONS}

    @property
    def first_response_ms(self) -> dict[str, float]:
        """From asking to the first answer of whatever kind: percentiles, ms."""
        return percentiles([wait_ms(ask, ask.first_response_at) for ask in self._sent_attempts])

    @property
    def final_response_ms(self) -> dict[str, float]:
        """From asking to the final answer: percentiles, ms."""
        return percentiles([wait_ms(ask, ask.final_response_at) for ask in self._sent_attempts])

    @property
    def _sent_attempts(self) -> list[BookingAttempt]:
        return [ask for ask in self.attempt_log.attempts if ask.sent_at is not None]

    def holders(self) -> dict[str, list[str]]:
        """Who has a place, by slot id, in the order of the roster."""
        names = {ask.user.user_id: ask.user.name for ask in self.attempt_log.attempts}
        return {
            slot.id: [names.get(user, user) for _, user in truth.roster]
            for slot, truth in self.evidence.slots_with_state()
        }


def wait_ms(attempt: BookingAttempt, until: float | None) -> float | None:
    """Milliseconds since the person asked, None for one who waits still."""
    return None if until is None or attempt.sent_at is None else (until - attempt.sent_at) * 1000


def percentiles(waits: Sequence[float | None]) -> dict[str, float]:
    """Of those waits that ended, by the nearest rank; empty if none did."""
    ended = sorted(wait for wait in waits if wait is not None)
    if not ended:
        return {}
    return {
        name: round(ended[ceil(share * len(ended)) - 1], 1) for name, share in PERCENTILES.items()
    }


def time_series(result: SimulationResult) -> list[SampledPoint]:
    """How it went, from the opening to the last answer, in at most 200 steps."""
    asked = sorted(ask.sent_at for ask in result.attempt_log.attempts if ask.sent_at is not None)
    answers = sorted(
        (ask.final_response_at, ask.outcome)
        for ask in result.attempt_log.attempts
        if ask.final_response_at and ask.outcome
    )
    left_at = [at for at, _ in result.places_left_series]
    count = min(MAX_POINTS, max(len(answers), 2))
    told: Counter[str] = Counter(dict.fromkeys(result.attempt_log.outcomes, 0))
    series, heard = [], 0
    for number in range(count + 1):
        at = result.duration_s * number / count
        while heard < len(answers) and answers[heard][0] <= at:
            told[answers[heard][1]] += 1
            heard += 1
        known = bisect_right(left_at, at)
        left = result.places_left_series[known - 1][1] if known else None
        series.append(SampledPoint(round(at, 4), bisect_right(asked, at), dict(told), left))
    return series


def sort_outcomes(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Booked first, then the most frequent."""
    by_count = sorted(outcomes.items(), key=lambda item: (item[0] != BOOKED, -item[1], item[0]))
    return dict(by_count)
