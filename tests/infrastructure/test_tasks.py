"""The end of background tasks, and what they try again later."""

import asyncio
from datetime import UTC, datetime, timedelta

from slotlock.infrastructure.tasks import (
    FIRST_DELAY,
    MAX_DELAY,
    FailingItems,
    cancel_and_wait,
)


async def test_a_task_that_swallowed_its_cancellation_is_cancelled_again() -> None:
    swallowed = 0

    async def swallow_twice() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed == 2:
                    raise
                swallowed += 1

    task = asyncio.create_task(swallow_twice())
    await asyncio.sleep(0)
    await cancel_and_wait(task, patience_s=0.001)
    assert task.cancelled()
    assert swallowed == 2


async def test_an_error_of_the_task_does_not_reach_those_who_end_it() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError

    task = asyncio.create_task(fail_when_cancelled())
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    assert isinstance(task.exception(), OSError)


async def test_no_task_is_nothing_to_wait_for() -> None:
    await cancel_and_wait(None)


def test_an_item_waits_twice_as_long_after_each_failure_and_not_after_a_success() -> None:
    failing, now = FailingItems(), datetime(2026, 1, 1, tzinfo=UTC)
    delays = []
    for _ in range(12):
        delays.append(failing.add("a", now))
        now += delays[-1]
        assert failing.waiting(now - timedelta(milliseconds=1)) == ["a"]
        assert failing.waiting(now) == []
    assert delays[:3] == [FIRST_DELAY, 2 * FIRST_DELAY, 4 * FIRST_DELAY]
    assert delays[-2:] == [MAX_DELAY, MAX_DELAY]
    failing.remove("a")
    assert failing.add("a", now) == FIRST_DELAY
