"""Short limits of the supervisor, and server processes that start slowly or not at all.

The first process starts as usual, so that the app is ready.
"""

import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from slotlock.api.app_state import AppState, open_app_state
from slotlock.cli import supervisor
from tests.support.apps import pause_points

_starts = 0


def _count_starts() -> None:
    """Count the starts in the supervisor; a forked process finds its own number."""
    start = supervisor.Supervisor._start_process

    def counted_start(*args: Any) -> supervisor.SupervisedProcess:
        global _starts
        _starts += 1
        return start(*args)

    supervisor.Supervisor._start_process = counted_start  # type: ignore[method-assign, assignment]


def pause_later_starts() -> None:
    """Pause while the application starts."""
    _count_starts()

    @asynccontextmanager
    async def open_late(*args: Any, **kwargs: Any) -> AsyncIterator[AppState]:
        if _starts > 1:
            await pause_points.pause_if_selected("start")
        async with open_app_state(*args, **kwargs) as state:
            yield state

    pause_points.replace_everywhere(open_app_state, open_late)


def fail_starts_after(count: int) -> None:
    """Fail while the application starts, as without MongoDB, but not the first times."""
    _count_starts()

    @asynccontextmanager
    async def open_never(*args: Any, **kwargs: Any) -> AsyncIterator[AppState]:
        if _starts > count:
            raise RuntimeError("the start fails")
        async with open_app_state(*args, **kwargs) as state:
            yield state

    pause_points.replace_everywhere(open_app_state, open_never)


def shorten_health_limit() -> None:
    """Expect an answer within a few seconds."""
    supervisor.HEALTH_LIMIT_S = 5.0


def shorten_end_limit() -> None:
    """Kill a process that does not end soon after the time for its requests."""
    supervisor.END_RESERVE_S = 1.0


def hang_on_signal() -> None:
    """Let the event loop of a process hang after SIGUSR1; its other threads go on."""
    beat = supervisor.beat

    def beat_and_listen(pipe: int, supervisor_pid: int) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: time.sleep(3_600))
        beat(pipe, supervisor_pid)

    supervisor.beat = beat_and_listen


def shorten_pauses() -> None:
    """Pause for tenths of a second before another start."""
    supervisor.FIRST_PAUSE_S = 0.1


def shorten_start_limit() -> None:
    """Once the first process serves, give others a second to start."""
    check_all = supervisor.Supervisor._check_all

    def check_with_limit(checking: supervisor.Supervisor, passed_s: float) -> None:
        if checking._has_served:
            supervisor.START_LIMIT_S = 1.0
        check_all(checking, passed_s)

    supervisor.Supervisor._check_all = check_with_limit  # type: ignore[method-assign, assignment]


PAUSES = {"start": pause_later_starts}
FAULTS: dict[str, Callable[[], None]] = {
    "later-starts-fail": partial(fail_starts_after, 1),
    "starts-after-two-fail": partial(fail_starts_after, 2),
    "hanging-on-signal": hang_on_signal,
    "short-end-limit": shorten_end_limit,
    "short-health-limit": shorten_health_limit,
    "short-pauses": shorten_pauses,
    "short-start-limit": shorten_start_limit,
}
