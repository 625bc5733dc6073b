"""The counts, times and series of one simulation, for the summary, the JSON and the plot."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from slotlock.simulation.model.attempts import BOOKED, RETRY_REASONS, AttemptLog, BookingAttempt
from slotlock.simulation.model.invariants import Evidence, InvariantResult
from slotlock.simulation.model.plan import SimulationConfig

# Enough for a plot, and few enough to read.
MAX_POINTS = 200
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True, slots=True)
class SampledPoint:
    """The counts at one moment, in seconds after the opening; outcomes are final ones."""

    seconds: float
    sent: int
    outcomes: Mapping[str, int]
    places_left: int | None


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Everything that one simulation reports.

    `request_count` and `cpu_seconds` cover the rush; the CPU time is that of the simulation.
    """

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
        """Return whether an invariant does not hold."""
        return not all(invariant.holds for invariant in self.invariants)

    @property
    def retries(self) -> dict[str, int]:
        """Return the number of retries by reason."""
        return {kind: self.attempt_log.retries[kind] for kind in RETRY_REASONS}

    @property
    def first_response_ms(self) -> dict[str, float]:
        """Return percentiles of the milliseconds until the first response of any kind."""
        return percentiles(
            [wait_ms(attempt, attempt.first_response_at) for attempt in self._sent_attempts]
        )

    @property
    def final_response_ms(self) -> dict[str, float]:
        """Return percentiles of the milliseconds until the final response."""
        return percentiles(
            [wait_ms(attempt, attempt.final_response_at) for attempt in self._sent_attempts]
        )

    @property
    def _sent_attempts(self) -> list[BookingAttempt]:
        return [attempt for attempt in self.attempt_log.attempts if attempt.sent_at is not None]

    def holders(self) -> dict[str, list[str]]:
        """Return the names of the users on each slot's roster, in its order, by slot id."""
        names = {attempt.user.user_id: attempt.user.name for attempt in self.attempt_log.attempts}
        return {
            slot.id: [names.get(user_id, user_id) for _, user_id in state.roster]
            for slot, state in self.evidence.slots_with_state()
        }


def wait_ms(attempt: BookingAttempt, until: float | None) -> float | None:
    """Return the milliseconds from the first request until then, or None if that never came."""
    return None if until is None or attempt.sent_at is None else (until - attempt.sent_at) * 1000


def percentiles(waits: Sequence[float | None]) -> dict[str, float]:
    """Return the nearest-rank percentiles of all waits that ended; empty if none did."""
    ended = sorted(wait for wait in waits if wait is not None)
    if not ended:
        return {}
    return {
        name: round(ended[ceil(share * len(ended)) - 1], 1) for name, share in PERCENTILES.items()
    }


def time_series(result: SimulationResult) -> list[SampledPoint]:
    """Return the counts from the opening to the last final response, at most 200 points.

    The places left in the last point are those that arrived last: a response does not wait until
    its availability is published.
    """
    attempts = result.attempt_log.attempts
    sent_times = sorted(attempt.sent_at for attempt in attempts if attempt.sent_at is not None)
    finals = sorted(
        (attempt.final_response_at, attempt.outcome)
        for attempt in attempts
        if attempt.final_response_at and attempt.outcome
    )
    places_left_times = [at for at, _ in result.places_left_series]
    step_count = min(MAX_POINTS, max(len(finals), 2))
    outcomes: Counter[str] = Counter(dict.fromkeys(result.attempt_log.outcomes, 0))
    series, counted = [], 0
    for step in range(step_count + 1):
        at = result.duration_s * step / step_count
        while counted < len(finals) and finals[counted][0] <= at:
            outcomes[finals[counted][1]] += 1
            counted += 1
        is_last = step == step_count
        index = len(places_left_times) if is_last else bisect_right(places_left_times, at)
        places_left = result.places_left_series[index - 1][1] if index else None
        series.append(
            SampledPoint(round(at, 4), bisect_right(sent_times, at), dict(outcomes), places_left)
        )
    return series


def sort_outcomes(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Return the outcomes with Booked first, then by descending count."""
    by_count = sorted(outcomes.items(), key=lambda item: (item[0] != BOOKED, -item[1], item[0]))
    return dict(by_count)
