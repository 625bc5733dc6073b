"""The steps of a request share one deadline, which waits of the caller extend."""

import asyncio

import pytest
from pymongo import _csot

from slotlock.infrastructure import request_deadline
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter
from slotlock.infrastructure.request_deadline import (
    REQUEST_TIMEOUT_S,
    RESERVE_S,
    RequestDeadlines,
    RequestTimeoutError,
    allow_wait,
    step_timeout_s,
    untimed,
    within_deadline,
)
from tests.support.polling import eventually


async def mongodb_deadline() -> float:
    """Return the instant until which the driver would try an operation."""
    return _csot.get_deadline()


async def test_every_step_gets_what_the_first_one_has_left() -> None:
    deadline, limiter = RequestDeadlines().begin(), ConcurrencyLimiter(1)
    with within_deadline():
        deadline.at -= 2  # the first step took so long
        ends = [await limiter.run(mongodb_deadline) for _ in range(2)]
    assert ends[0] <= deadline.at - RESERVE_S + 0.5
    assert ends[1] == pytest.approx(ends[0], abs=0.5)


async def test_control_without_a_request_the_driver_has_its_own_limits() -> None:
    assert await ConcurrencyLimiter(1).run(mongodb_deadline) == float("inf")


async def test_a_task_that_outlives_its_request_is_not_limited_by_it() -> None:
    RequestDeadlines().begin()
    with within_deadline():
        is_over = asyncio.Event()

        async def work_on() -> float | None:
            await is_over.wait()
            return step_timeout_s()

        task = asyncio.create_task(work_on())
    is_over.set()
    assert await task is None


async def test_a_step_that_never_ends_is_cancelled_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_deadline, "REQUEST_TIMEOUT_S", 0.0)
    RequestDeadlines().begin()
    with pytest.raises(RequestTimeoutError), within_deadline():
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_step_that_begins_late_is_watched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_deadline, "CHECK_INTERVAL_S", 0.01)
    deadlines = RequestDeadlines()
    deadline = deadlines.begin()
    with within_deadline():
        pass

    await eventually(lambda: deadlines.timer is None, "the timer ends after the step")
    deadline.at = 0.0
    with pytest.raises(RequestTimeoutError), within_deadline():
        await asyncio.Event().wait()


async def test_a_cancellation_from_outside_is_none_of_the_deadline() -> None:
    async def wait() -> None:
        RequestDeadlines().begin()
        with within_deadline():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_each_wait_of_the_caller_is_added_once() -> None:
    deadline = RequestDeadlines().begin()
    begun_at = deadline.at
    allow_wait(20.0)
    assert deadline.at == pytest.approx(begun_at + 20, abs=0.5)
    allow_wait(19.0)  # the rest of the same wait, after a second
    assert deadline.at == pytest.approx(begun_at + 20, abs=0.5)


@pytest.mark.parametrize("late_s", [0.0, REQUEST_TIMEOUT_S])
async def test_after_untimed_work_even_a_late_request_has_its_whole_time(late_s: float) -> None:
    deadline = RequestDeadlines().begin()
    deadline.at -= late_s
    with within_deadline():
        with untimed():
            assert step_timeout_s() is None
        left_s = step_timeout_s()
    assert left_s == pytest.approx(REQUEST_TIMEOUT_S - RESERVE_S, abs=0.5)
    assert not deadline.is_running
