"""The tables: rates at two sizes, what each unit adds, products, and a linear extrapolation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.scale.cases import LARGE, SMALL, Pair
from bench.scale.counters import Rates

Metric = Callable[[Rates], float]
METRICS: dict[str, Metric] = {
    "MongoDB commands/s": lambda rates: rates.mongo,
    "documents/s": lambda rates: rates.documents,
    "Valkey calls/s": lambda rates: rates.redis,
}
FEW, MANY = SMALL["processes"], LARGE["processes"]
MAX_COMMANDS, MIN_COMMAND_RATE = 8, 0.15
# Two runs of the same deployment on a busy machine differ by less in commands and documents.
NOISE = 0.1


@dataclass(frozen=True, slots=True)
class Growth:
    """The rates of a quantity at its two sizes, by the number of processes and the size."""

    pair: Pair
    rates: Mapping[tuple[int, int], Rates]

    def per_unit(self, metric: Metric, processes: int) -> float:
        """Return what one unit more adds."""
        small, large = self.pair.sizes
        added = _added(metric(self.rates[processes, small]), metric(self.rates[processes, large]))
        return added / (large - small)

    def per_unit_and_process(self, metric: Metric) -> float:
        """Return what one unit more adds in each further process: a cost of their product.

        It is 0 if it is within the noise of the four rates, of which it is a small difference.
        """
        small, large = self.pair.sizes
        added = [
            metric(self.rates[processes, large]) - metric(self.rates[processes, small])
            for processes in (FEW, MANY)
        ]
        noise = NOISE * max(metric(rates) for rates in self.rates.values())
        difference = added[1] - added[0]
        if abs(difference) <= noise:
            return 0.0
        return difference / (large - small) / (MANY - FEW)


@dataclass(frozen=True, slots=True)
class Plan:
    """The sizes of a large deployment."""

    processes: int = 50
    sizes: Mapping[str, int] | None = None

    def size(self, quantity: str) -> int:
        """Return how many of a quantity there are."""
        return (self.sizes or LARGE_DEPLOYMENT)[quantity]


LARGE_DEPLOYMENT = {"slots": 1_000_000, "sockets": 100_000, "users": 100_000, "changes": 1_000}


def rates_line(title: str, rates: Rates) -> str:
    """Return the rates of a deployment, and the commands behind them."""
    cpu = f"{rates.app:7.1%}{rates.mongod:7.1%}{rates.valkey:7.1%}"
    commands = ", ".join(
        f"{name.partition(' ')[2]} {rate:.1f}"
        for name, rate in rates.commands.most_common(MAX_COMMANDS)
        if rate >= MIN_COMMAND_RATE
    )
    return (
        f"{title:34}{rates.mongo:8.1f}{rates.documents:10.1f}{rates.examined:10.1f}"
        f"{rates.redis:9.1f}{cpu}{rates.app_bytes / 2**20:9.1f}  {commands}"
    )


def header() -> str:
    """Return the titles of `rates_line`."""
    return (
        f"{'a second':34}{'MongoDB':>8}{'documents':>10}{'examined':>10}{'Valkey':>9}"
        f"{'app':>7}{'mongod':>7}{'valkey':>7}{'app MiB':>9}  the most frequent commands"
    )


def growth_lines(idle: Mapping[int, Rates], growths: Sequence[Growth]) -> list[str]:
    """Return what each unit adds a second, in one process and for each further process.

    CPU shares are left out: they are too small and too noisy to extrapolate.
    """
    lines = [f"{'each adds a second':22}" + "".join(f"{name:>20}" for name in METRICS)]
    values = [_per_process(idle, metric) for metric in METRICS.values()]
    lines.append(f"{'process':22}" + "".join(f"{value:20.4f}" for value in values))
    for growth in growths:
        name = growth.pair.quantity[:-1]
        each = [growth.per_unit(metric, FEW) for metric in METRICS.values()]
        product = [growth.per_unit_and_process(metric) for metric in METRICS.values()]
        lines.append(f"{name:22}" + "".join(f"{value:20.6f}" for value in each))
        lines.append(f"{f'process x {name}':22}" + "".join(f"{value:20.6f}" for value in product))
    return lines


def memory_lines(growths: Sequence[Growth]) -> list[str]:
    """Return how much memory of one process each unit adds."""
    lines = []
    for growth in growths:
        small, large = growth.pair.sizes
        bytes_added = growth.rates[FEW, large].app_bytes - growth.rates[FEW, small].app_bytes
        added = bytes_added / (large - small)
        lines.append(f"each of {growth.pair.quantity} adds {added / 1024:.1f} KiB of memory")
    return lines


def plan_lines(
    idle: Mapping[int, Rates], growths: Sequence[Growth], plan: Plan | None = None
) -> list[str]:
    """Return what a large deployment comes to, if all costs grow linearly."""
    plan = plan or Plan()
    sizes = ", ".join(
        f"{plan.size(growth.pair.quantity):,} {growth.pair.quantity}" for growth in growths
    )
    lines = [f"{plan.processes} processes, {sizes}:"]
    for name, metric in METRICS.items():
        by_process = _per_process(idle, metric) * plan.processes
        parts = [(growth.pair.quantity, extrapolated(growth, metric, plan)) for growth in growths]
        listed = "".join(f" + {part:,.1f} for {quantity}" for quantity, part in parts)
        total = by_process + sum(part for _, part in parts)
        lines.append(f"  {name:20}{total:12,.1f} = {by_process:,.1f} for processes{listed}")
    return lines


def extrapolated(growth: Growth, metric: Metric, plan: Plan) -> float:
    """Return what a quantity adds in a large deployment, products included."""
    size = plan.size(growth.pair.quantity)
    product = growth.per_unit_and_process(metric) * (plan.processes - FEW)
    return size * (growth.per_unit(metric, FEW) + product)


def _per_process(idle: Mapping[int, Rates], metric: Metric) -> float:
    return _added(metric(idle[FEW]), metric(idle[MANY])) / (MANY - FEW)


def _added(small: float, large: float) -> float:
    """Return the growth between two rates, or 0 if it is within the noise of a measurement."""
    return large - small if abs(large - small) > NOISE * max(abs(small), abs(large)) else 0.0
