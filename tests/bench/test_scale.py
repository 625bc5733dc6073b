"""The extrapolation of the scale benchmark: growth within noise counts as none, products show."""

from collections import Counter

from bench.scale.cases import PAIRS
from bench.scale.counters import Rates
from bench.scale.report import Growth, Plan, extrapolated, plan_lines, rates_line

FEW_SOCKETS, MANY_SOCKETS = 200, 2_000
SOCKETS = next(pair for pair in PAIRS if pair.quantity == "sockets")
PLAN = Plan(processes=51, sizes={"sockets": 1_000})


def rates(find: float, calls: float = 0.0) -> Rates:
    """Return the rates of so many commands a second."""
    commands = Counter({"mongo find": find, "valkey get": calls})
    return Rates(commands, 0.0, 0.0, 0.0, 0.0, 0.0, app_bytes=0)


def growth(*commands: float) -> Growth:
    """Return the growth of few and many sockets, with one process and then with three."""
    cells = [(n, size) for n in (1, 3) for size in (FEW_SOCKETS, MANY_SOCKETS)]
    return Growth(SOCKETS, dict(zip(cells, map(rates, commands), strict=True)))


def test_growth_is_extrapolated_in_a_straight_line() -> None:
    grown = growth(200.0, 2_000.0, 200.0, 2_000.0)
    assert grown.per_unit(lambda each: each.mongo, 1) == 1.0
    assert extrapolated(grown, lambda each: each.mongo, PLAN) == 1_000.0


def test_a_cost_of_each_socket_in_each_process_is_found() -> None:
    grown = growth(200.0, 2_000.0, 600.0, 6_000.0)
    assert grown.per_unit_and_process(lambda each: each.mongo) == 1.0
    assert extrapolated(grown, lambda each: each.mongo, PLAN) == 51_000.0


def test_a_difference_within_the_noise_counts_as_none() -> None:
    assert extrapolated(growth(100.0, 95.0, 100.0, 104.0), lambda each: each.mongo, PLAN) == 0.0


def test_the_report_names_the_commands_and_the_parts_of_a_large_deployment() -> None:
    assert "find 7.0" in rates_line("1 process", rates(7.0))
    lines = plan_lines(
        {1: rates(7.0), 3: rates(9.0)}, [growth(200.0, 2_000.0, 200.0, 2_000.0)], PLAN
    )
    assert "1,051.0 = 51.0 for processes + 1,000.0 for sockets" in lines[1]


def test_a_product_within_the_noise_of_its_rates_counts_as_none() -> None:
    grown = growth(91.0, 112.0, 303.0, 322.0)
    assert grown.per_unit_and_process(lambda each: each.mongo) == 0.0
