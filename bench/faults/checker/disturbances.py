"""When faults disturbed the servers: a promise with a time counts only the time without them."""

import re
from bisect import bisect_right
from collections.abc import Iterable

from bench.faults.history import Json

# After everything is healthy, processes notice it: by a timeout of 3 s at the latest.
RECOVERY_S = 3.0
# What ends a process before it records that it sent a mail, and what loses responses to mails.
PROCESS_ENDS = re.compile("(app|worker|processes) (killed|stopped)")
MAIL_SERVER_FAULT = re.compile("^mail server")
# What can lose keys, messages or requests of the queue, or keep an app from its Redis.
REDIS_FAULT = re.compile("redis|valkey|sentinel|cluster", re.IGNORECASE)


class Disturbances:
    """The faults of a campaign, each until everything is healthy and noticed."""

    def __init__(self, faults: Iterable[Json]) -> None:
        self._faults = sorted(
            (fault["started_at"], _end(fault), f"{fault['kind']} {fault['target']}")
            for fault in faults
        )
        # The disturbed periods without overlaps, and the undisturbed time before each.
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._calm_before: list[float] = []
        for start, end, _ in self._faults:
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
                continue
            calm_s = self._calm_until(start)
            self._starts.append(start)
            self._ends.append(end)
            self._calm_before.append(calm_s)

    def _calm_until(self, time: float) -> float:
        index = bisect_right(self._starts, time) - 1
        if index < 0:
            return time
        end = self._ends[index]
        return self._calm_before[index] + (time - end if time > end else 0.0)

    def calm_s(self, since: float, until: float) -> float:
        """Return how many seconds between two times no fault disturbed; at least 0."""
        return max(self._calm_until(until) - self._calm_until(since), 0.0)

    def may_concern(self, pattern: re.Pattern[str], since: float, until: float) -> bool:
        """Return whether a fault with such a kind or target disturbed a period."""
        return any(
            start <= until and since <= end and pattern.search(name)
            for start, end, name in self._faults
        )

    def periods(self, pattern: re.Pattern[str]) -> list[tuple[float, float]]:
        """Return when the faults with such a kind or target began, and when all was healthy."""
        return [(start, end) for start, end, name in self._faults if pattern.search(name)]


def _end(fault: Json) -> float:
    healthy_at = fault.get("healthy_at") or fault["ended_at"]
    return float("inf") if healthy_at is None else float(healthy_at) + RECOVERY_S
