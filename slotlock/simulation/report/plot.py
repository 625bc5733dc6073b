"""A plot of the rush: places left and responses, from the opening to the last response."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slotlock.simulation.report.metrics import (
    SampledPoint,
    SimulationResult,
    sort_outcomes,
    time_series,
)

COLORS = ("#1b7837", "#c0392b", "#7f8c8d", "#8e44ad", "#d68910")
PLACES_LEFT_COLOR = "#1f4e9c"
# The last response is a step, which is visible only with some room to its right.
X_AXIS_MARGIN = 1.03


def draw_plot(result: SimulationResult, path: Path) -> None:
    """Draw the plot as .svg or .png, by the suffix of the path; raises OSError."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes, config = figure.subplots(), result.config
    _draw_series(axes, time_series(result), list(sort_outcomes(result.attempt_log.outcomes)))
    axes.set_xlabel("seconds since the opening")
    axes.set_ylabel("final responses, places left")
    axes.set_xlim(0, max(result.duration_s, 1e-3) * X_AXIS_MARGIN)
    axes.set_ylim(bottom=0)
    axes.set_title(f"{config.size}, mode: {config.mode}")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path)


def _draw_series(axes: Axes, series: Sequence[SampledPoint], outcomes: Sequence[str]) -> None:
    series = [*series, replace(series[-1], seconds=max(series[-1].seconds, 1e-3) * X_AXIS_MARGIN)]
    seconds = [point.seconds for point in series]
    if outcomes:
        axes.stackplot(
            seconds,
            *([point.outcomes[name] for point in series] for name in outcomes),
            labels=outcomes,
            colors=COLORS,
            alpha=0.45,
            step="post",
        )
    axes.step(
        seconds,
        [float("nan") if point.places_left is None else point.places_left for point in series],
        where="post",
        color=PLACES_LEFT_COLOR,
        linewidth=2,
        clip_on=False,
        label="places left, live",
    )
