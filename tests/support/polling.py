"""Waiting for a state instead of for a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

TIMEOUT_S = 60.0  # for a machine that is busy with other tests
SYNC_INTERVAL_S = 0.01
ASYNC_INTERVAL_S = 0.01

Value = TypeVar("Value")


def wait_until(
    condition: Callable[[], bool], description: str, timeout_s: float = TIMEOUT_S
) -> None:
    """Block until the condition holds. Fails with the description after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out after {timeout_s} s: {description}")
        time.sleep(SYNC_INTERVAL_S)


async def poll_until(
    fetch: Callable[[], Awaitable[Value]], condition: Callable[[Value], object], description: str
) -> Value:
    """Fetch a value until the condition holds for it, and return it. Fails after TIMEOUT_S."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition(value := await fetch()):
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out: {description}; last value: {value}")
        await asyncio.sleep(ASYNC_INTERVAL_S)
    return value


async def eventually(condition: Callable[[], Awaitable[bool]], description: str) -> None:
    """Wait until the condition holds. Fails with the description after TIMEOUT_S."""
    await poll_until(condition, bool, description)
