"""During an outage the log has one line a second, with the count of the failures in between."""

import logging
from types import SimpleNamespace

import pytest
from pymongo.errors import NetworkTimeout

from slotlock.graphql.core import errors
from slotlock.graphql.core.errors import OUTAGE_LOG_INTERVAL_S, OutageLog, log_error


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        """Return the present time in seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Yield the clock of a log in which no outage was logged yet."""
    clock = Clock()
    monkeypatch.setattr(errors, "time", SimpleNamespace(monotonic=clock.monotonic))
    monkeypatch.setattr(errors, "_outage_log", OutageLog())
    return clock


def fail(count: int) -> set[str]:
    """Let requests fail in an outage. Return the error ids that their clients get."""
    return {log_error("a field failed", NetworkTimeout("no reply")) for _ in range(count)}


def test_an_outage_logs_one_line_a_second_with_the_count_of_the_others(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "slotlock.graphql")
    ids = [fail(1000)]
    clock.now += 0.99 * OUTAGE_LOG_INTERVAL_S
    ids[0] |= fail(5)
    for count in (3, 1):
        clock.now += OUTAGE_LOG_INTERVAL_S
        ids.append(fail(count))
    lines = [record.getMessage() for record in caplog.records]
    counts = [line.rpartition("(")[2] for line in lines]
    assert counts == [f"{count} more since the last line)" for count in (0, 1004, 2)]
    # Each client gets the id of a line that is in the log.
    assert [{line.split()[1].rstrip(":")} for line in lines] == ids


def test_an_error_that_is_no_outage_always_has_a_line_of_its_own(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    fail(2)
    assert len({log_error("a field failed", KeyError("a bug")) for _ in range(3)}) == 3
    assert sum("a bug" in record.exc_text for record in caplog.records if record.exc_text) == 3
