"""All figures of a comparison."""

from dataclasses import dataclass, field

from bench.comparison.rounds import Run
from bench.comparison.scenarios.fan_out import FanOutRun
from bench.comparison.scenarios.queue import QueueRun


@dataclass(slots=True)
class Figures:
    """The runs of each kind."""

    runs: list[Run] = field(default_factory=list)
    queue_runs: list[QueueRun] = field(default_factory=list)
    fan_out_runs: list[FanOutRun] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of runs of every kind."""
        return len(self.runs) + len(self.queue_runs) + len(self.fan_out_runs)

    @property
    def wrong(self) -> int:
        """The number of runs with problems. A fan-out that is not complete raises an error."""
        problems = [run.problems for run in self.runs]
        return sum(map(bool, [*problems, *(run.problems for run in self.queue_runs)]))

    @property
    def is_correct(self) -> bool:
        """Whether every run is correct."""
        return not self.wrong
