"""A plot of the comparison: the rate of every target divided by that of P2."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.comparison.load import WORKLOADS
from bench.comparison.ratios import Spread, rate, ratios
from bench.comparison.rounds import Run
from bench.comparison.targets.targets import P1, P2, P2B, SLOTLOCK

COLORS = {P1: "#b0b7bd", P2B: "#7f8c8d", SLOTLOCK: "#1f4e9c"}
BAR_WIDTH = 0.26


def draw_plot(runs: Sequence[Run], path: Path) -> None:
    """Draw the plot as .svg or .png, by the suffix of the path; raises OSError."""
    counts = list(dict.fromkeys(run.processes for run in runs))
    figure = Figure(figsize=(9, 3.6 * len(counts)), layout="constrained")
    panels = figure.subplots(len(counts), squeeze=False)
    for axes, processes in zip(panels[:, 0], counts, strict=True):
        _draw_bars(axes, runs, processes)
    figure.savefig(path)


def _draw_bars(axes: Axes, runs: Sequence[Run], processes: int) -> None:
    for index, (target, color) in enumerate(COLORS.items()):
        spreads = [
            Spread.of(ratios(runs, rate, (processes, workload), target, P2))
            for workload in WORKLOADS
        ]
        axes.bar(
            [position + (index - 1) * BAR_WIDTH for position in range(len(WORKLOADS))],
            [spread.median for spread in spreads],
            BAR_WIDTH,
            yerr=[
                [spread.median - spread.low for spread in spreads],
                [spread.high - spread.median for spread in spreads],
            ],
            capsize=2,
            label=target,
            color=color,
        )
    axes.axhline(1, color="black", linewidth=1, linestyle="--", label=P2)
    axes.set_xticks(range(len(WORKLOADS)), WORKLOADS)
    axes.set_ylabel(f"requests/s divided by those of {P2}")
    axes.set_title(f"processes of each target: {processes}; bars: median, lowest and highest round")
    axes.legend()
    axes.grid(axis="y", alpha=0.3)
