"""The report shows for how long bookings were impossible at each app."""

import time
from pathlib import Path

from bench.faults.availability import WatchedHistory
from bench.faults.history import PROBE, Operation
from bench.faults.injection.injector import InjectedFault
from bench.faults.report import NO_FAULT, fault_rows

APP = "http://127.0.0.1:1"


def fault(kind: str, started_at: float) -> InjectedFault:
    """Return a fault of 2 s after which everything is healthy within 1 s."""
    return InjectedFault(kind, "app0", started_at, started_at + 2, started_at + 3)


def test_a_row_has_the_gaps_of_the_better_and_of_the_worse_app() -> None:
    one = [second / 2 for second in range(100)]
    other = [second for second in one if not 10 <= second <= 14 and not 30 < second < 31.5]
    injected = [fault("app frozen", 10.2), fault("app frozen", 20.2), fault("app killed", 30.2)]

    rows = {row.kind: row for row in fault_rows(injected, [one, other])}

    frozen, killed, none = rows["app frozen"], rows["app killed"], rows[NO_FAULT]
    assert (frozen.count, frozen.better_app_gap_s, frozen.worse_app_gap_s) == (2, 0.5, 4.3)
    assert (killed.count, killed.better_app_gap_s, killed.worse_app_gap_s) == (1, 0.5, 1.3)
    assert (none.count, none.better_app_gap_s, none.worse_app_gap_s) == (2, 0.5, 0.5)


def test_only_new_bookings_of_probes_count_as_acknowledged(tmp_path: Path) -> None:
    history = WatchedHistory(tmp_path)
    for client, outcome in (
        ("user 1", "Booked"),
        (f"{PROBE} 1", "AlreadyBooked"),
        (f"{PROBE} 1", "BookingCancelled"),
        (f"{PROBE} 2", "Booked"),
    ):
        operation = Operation(history.next_id(), client, "book", "u", {"app": APP}, 1.0)
        operation.outcome, operation.finished_at = {"__typename": outcome}, time.monotonic()
        history.write(operation)
    history.close()

    assert history.request_count == 4
    assert {app: len(times) for app, times in history.acknowledged_at.items()} == {APP: 1}
