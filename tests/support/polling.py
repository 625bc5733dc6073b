"""Waiting for a state instead of for a time."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

TIMEOUT_S = 60.0  # for a machine that is busy with other tests
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.01, 0.1

Value = TypeVar("Value")

# How long tests have waited, by what they waited for. `make test-times` prints it.
waited_s = defaultdict[str, float](float)


def _intervals_s() -> Iterator[float]:
    """Yield the times between the polls of a state. What takes long is polled less often."""
    interval_s = MIN_INTERVAL_S
    while True:
        yield interval_s
        interval_s = min(1.2 * interval_s, MAX_INTERVAL_S)


@contextmanager
def _measured(description: str) -> Iterator[float]:
    """Yield the time at the start, and add the time of the block to `waited_s`."""
    started_at = time.monotonic()
    try:
        yield started_at
    finally:
        waited_s[description] += time.monotonic() - started_at


def wait_until(
    condition: Callable[[], bool], description: str, timeout_s: float = TIMEOUT_S
) -> None:
    """Block until the condition holds. Fails with the description after the timeout."""
    with _measured(description) as started_at:
        intervals_s = _intervals_s()
        while not condition():
            if time.monotonic() - started_at > timeout_s:
                raise AssertionError(f"timed out after {timeout_s} s: {description}")
            time.sleep(next(intervals_s))


async def poll_until(
    fetch: Callable[[], Awaitable[Value]], condition: Callable[[Value], object], description: str
) -> Value:
    """Fetch a value until the condition holds for it, and return it. Fails after TIMEOUT_S."""
    with _measured(description) as started_at:
        intervals_s = _intervals_s()
        while not condition(value := await fetch()):
            if time.monotonic() - started_at > TIMEOUT_S:
                raise AssertionError(f"timed out: {description}; last value: {value}")
            await asyncio.sleep(next(intervals_s))
        return value


async def eventually(condition: Callable[[], bool | Awaitable[bool]], description: str) -> None:
    """Wait until the condition holds. Fails with the description after TIMEOUT_S."""

    async def holds() -> bool:
        value = condition()
        return value if isinstance(value, bool) else await value

    await poll_until(holds, bool, description)
