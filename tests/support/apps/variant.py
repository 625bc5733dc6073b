"""The app without some of its guards, or with a pause point.

Negative controls need an app that lacks a guard. Races need an app that pauses at a given point.
This module patches both into the app from outside; the app itself contains no test code.

    VARIANT_WITHOUT_GUARDS  names of guards to disable and faults to inject, separated by spaces
    VARIANT_PAUSE_AT        the point at which the first operation pauses
    VARIANT_PAUSE_KEY       the Redis keys over which the test resumes it, see pause_points
    VARIANT_COMMAND         the command to run and its arguments; by default serve
"""

import os
from collections.abc import Callable

from slotlock.cli.main import main
from tests.support.apps import pause_points
from tests.support.apps.variants import (
    admission_batches,
    admission_queue,
    admission_worker,
    booking_rules,
    campaigns,
    clocks,
    locks,
    redis_counters,
    series,
    sessions,
    slot_writer,
    websockets,
)
from tests.support.apps.versions import next_version
from tests.support.cli import slow_starts
from tests.support.notifications import mail_variants

SWITCHES: dict[str, Callable[[], None]] = {
    **locks.GUARDS,
    **slot_writer.GUARDS,
    **slot_writer.FAULTS,
    **redis_counters.GUARDS,
    **redis_counters.FAULTS,
    **booking_rules.GUARDS,
    **campaigns.GUARDS,
    **clocks.GUARDS,
    **clocks.FAULTS,
    **series.GUARDS,
    **slow_starts.FAULTS,
    **sessions.GUARDS,
    **websockets.GUARDS,
    **websockets.FAULTS,
    **admission_queue.GUARDS,
    **admission_worker.GUARDS,
    **admission_worker.FAULTS,
    **admission_batches.GUARDS,
    **admission_batches.FAULTS,
    **mail_variants.GUARDS,
    **mail_variants.FAULTS,
    **next_version.GUARDS,
    **next_version.FAULTS,
}
# This point is inside functions that a guard replaces; only the replacement pauses there.
PAUSES_OF_SWITCHES = ("between-steps",)
PAUSES: dict[str, Callable[[], None]] = {
    **locks.PAUSES,
    **slot_writer.PAUSES,
    **campaigns.PAUSES,
    **series.PAUSES,
    **slow_starts.PAUSES,
    **admission_queue.PAUSES,
    **admission_worker.PAUSES,
}


def serve_variant() -> int:
    """Run the app as the environment describes it. Returns its exit code."""
    for name in os.environ.get("VARIANT_WITHOUT_GUARDS", "").split():
        SWITCHES[name]()
    point = pause_points.selected_point()
    if point and point not in PAUSES_OF_SWITCHES:
        PAUSES[point]()
    return main(os.environ.get("VARIANT_COMMAND", "serve").split())
