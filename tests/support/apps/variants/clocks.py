"""The guard of the time of decisions, and hosts whose clocks are wrong."""

import os
import time
from datetime import datetime
from importlib.util import module_from_spec, spec_from_file_location

from slotlock.infrastructure.mongo.clock import MongoClock
from slotlock.services.container import utc_now
from tests.support.apps.pause_points import replace_everywhere


def _time_of_host(_clock: MongoClock) -> datetime:
    return utc_now()


def use_host_clock() -> None:
    """Decide by the clock of the host."""
    MongoClock.now = _time_of_host  # type: ignore[method-assign,assignment]


def skew_clock() -> None:
    """Skew the clock of the process by the seconds in the file that SKEWED_CLOCK_FILE names.

    VARIANT_CLOCK_MODULE is the path of the module that does so when it is executed.
    """
    true_time = time.time
    spec = spec_from_file_location("skewed_clock", os.environ["VARIANT_CLOCK_MODULE"])
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(module_from_spec(spec))
    # A forked process has imported its modules before.
    replace_everywhere(true_time, time.time)


GUARDS = {"mongodb-time": use_host_clock}
FAULTS = {"skewed-clock": skew_clock}
