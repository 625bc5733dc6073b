"""A pytest plugin that prints what the time of the tests is spent on: `make test-times`.

Each worker adds to a report the time of its fixtures and of its waits; pytest-xdist sends both to
the process that prints. Times of parallel workers add up.
"""

from collections import defaultdict
from collections.abc import Generator, Mapping
from time import perf_counter

import pytest

from tests.support.polling import waited_s

TOP = 15
MAX_FILES_OF_A_TENTH = 6

# What this process measured since its last report.
fixtures_s = defaultdict[str, float](float)
# The sums over all workers, by what a table shows.
sums_s = {
    title: defaultdict[str, float](float)
    for title in ("phase", "folder", "fixture", "wait", "file", "test")
}


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Measure the setup of a fixture, which includes those that it requests last."""
    started_at = perf_counter()
    try:
        return (yield)
    finally:
        fixtures_s[f"{fixturedef.argname} ({fixturedef.scope})"] += perf_counter() - started_at


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a report what was measured since the last one."""
    report = yield
    report.__dict__["measured_s"] = {"fixture": dict(fixtures_s), "wait": dict(waited_s)}
    fixtures_s.clear()
    waited_s.clear()
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a report to the sums. A worker ignores its own: the other process has them all."""
    file, _, _ = report.nodeid.partition("::")
    folder = "/".join(file.split("/")[:3]).removesuffix(file.rpartition("/")[2]).rstrip("/")
    names = {"phase": report.when, "folder": folder, "file": file, "test": report.nodeid}
    for title, name in names.items():
        sums_s[title][str(name)] += report.duration
    for title, times_s in report.__dict__.get("measured_s", {}).items():
        for name, seconds in times_s.items():
            sums_s[title][name] += seconds


def in_order(times_s: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return what took time, the longest first."""
    return sorted(times_s.items(), key=lambda item: -item[1])


def tenths(times_s: Mapping[str, float]) -> list[list[str]]:
    """Return the names that take each tenth of the time, those with the most time first."""
    total_s, passed_s = sum(times_s.values()), 0.0
    groups: list[list[str]] = [[] for _ in range(10)]
    for name, seconds in in_order(times_s):
        groups[min(9, int(10 * passed_s / total_s))].append(name)
        passed_s += seconds
    return groups


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums."""
    write = terminalreporter.write_line
    total_s = sum(sums_s["phase"].values()) or 1.0
    for title, times_s in sums_s.items():
        terminalreporter.section(f"seconds by {title}")
        for name, seconds in in_order(times_s)[:TOP]:
            write(f"{seconds:8.1f} {seconds / total_s:5.0%}  {name}")
    terminalreporter.section("files of each tenth of the time")
    for number, names in enumerate(tenths(sums_s["file"]), 1):
        more = len(names) - MAX_FILES_OF_A_TENTH
        shown = ", ".join(names[:MAX_FILES_OF_A_TENTH]) + (f" and {more} more" if more > 0 else "")
        write(f"{number:3d}. {shown or 'the files above'}")
