"""A picture of the rush: places left and answers, from the opening to the last answer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slotlock.api.simulation.findings import Moment, Run, moments, ordered

COLOURS = ("#1b7837", "#c0392b", "#7f8c8d", "#8e44ad", "#d68910")
LEFT_COLOUR = "#1f4e9c"
# The last answer is a step, too: it is seen only where something of it lies to its right.
BEYOND_THE_END = 1.03


def draw(run: Run, path: Path) -> None:
    """Write it; the ending of the path, .svg or .png, says as what. Errors: OSError."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes, plan = figure.subplots(), run.plan
    _draw_series(axes, moments(run), list(ordered(run.ledger.outcomes)))
    axes.set_xlabel("seconds since the opening")
    axes.set_ylabel("final answers so far, places left")
    axes.set_xlim(0, max(run.seconds, 1e-3) * BEYOND_THE_END)
    axes.set_ylim(bottom=0)
    axes.set_title(
        f"{plan.people:,} people, slots: {plan.slots:,}, places in each: {plan.places:,}, "
        f"by {plan.by}"
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path)


def _draw_series(axes: Axes, series: Sequence[Moment], outcomes: Sequence[str]) -> None:
    series = [*series, replace(series[-1], seconds=max(series[-1].seconds, 1e-3) * BEYOND_THE_END)]
    seconds = [moment.seconds for moment in series]
    if outcomes:
        axes.stackplot(
            seconds,
            *([moment.answers[name] for moment in series] for name in outcomes),
            labels=[f"told {name}" for name in outcomes],
            colors=COLOURS,
            alpha=0.45,
            step="post",
        )
    axes.step(
        seconds,
        [float("nan") if moment.places_left is None else moment.places_left for moment in series],
        where="post",
        color=LEFT_COLOUR,
        linewidth=2,
        clip_on=False,
        label="places left, as heard live",
    )
