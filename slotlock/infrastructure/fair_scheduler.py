"""Schedules the jobs of a scarce resource by priority, and its clients by round robin.

Before each of its jobs, a client waits for at most one job of each other client with the same
priority; a client that is alone may use all of the resource. A job waits for a limited time, within
the deadline of its request, and one that nobody waits for any more does not run.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from time import monotonic
from typing import Generic, TypeVar

from slotlock.infrastructure.request_deadline import step_timeout_s, untimed

# What a request needs after the wait: for the job, and for the steps that follow.
TIME_AFTER_WAIT_S = 1.5
# One in so many jobs that begin has a lower priority than the highest, if such a job waits; one in
# so many of these has the lowest, and so on.
LOWER_INTERVAL = 4
# The mean time of a job is that of about so many.
JOBS_IN_MEAN = 50
MIN_RETRY_AFTER_S = 1.0
# An attacker who never comes back must not send those who are refused with them away for longer.
MAX_RETRY_AFTER_S = 120.0

Result = TypeVar("Result")


class Priority(IntEnum):
    """Which jobs go first. Each priority has a share of all jobs, and of all places to wait."""

    HIGH = 0
    NORMAL = 1
    LOW = 2

    @property
    def share(self) -> float:
        """What the priority has if the higher and lower ones use all of theirs."""
        of_higher: float = LOWER_INTERVAL**-self
        return of_higher if self is Priority.LOW else of_higher * (1 - 1 / LOWER_INTERVAL)


class SchedulerFullError(Exception):
    """The job did not run: others use all of the resource, or it would have begun too late.

    `retry_after_ms` says when there will be room for it, behind the jobs that wait and those that
    were refused before it.
    """

    def __init__(self, retry_after_s: float = MIN_RETRY_AFTER_S) -> None:
        super().__init__()
        self.retry_after_ms = round(retry_after_s * 1000)


def spread(seconds: float) -> float:
    """Return a time to retry: `seconds` less up to a half at random, at least a second."""
    return max(seconds * random.uniform(0.5, 1), MIN_RETRY_AFTER_S)  # noqa: S311


@dataclass(slots=True, eq=False)
class _Job(Generic[Result]):
    client: str | None
    key: Hashable
    work: Callable[[], Awaitable[Result]]
    priority: Priority
    # Its place in the order of arrival.
    number: int
    # Until then it counts as running, even if it has a result.
    ended: asyncio.Event | None = None
    is_waiting: bool = True
    # The requests that wait for the result.
    waiters: set[asyncio.Future[Result]] = field(default_factory=set)


async def _begin() -> None:
    """Let the caller of `permit` do the work."""


class _Queue(dict[Hashable, _Job[Result]]):
    """The waiting jobs of a client with one priority, at least one, in order of arrival."""

    # When the last one that was refused comes back.
    last_return_at = 0.0


# The waiting jobs of each client, in the order of service.
_Queues = OrderedDict[str | None, _Queue[Result]]


class FairScheduler(Generic[Result]):
    """Runs up to `max_running` jobs at once; as many wait as can begin within `max_wait_s`.

    How many these are follows from the time that jobs take, at first `expected_job_s`. If more
    wait, the lowest priority that has more than its share loses a job: the newest one of the client
    with the most, and of several such clients the newest of all. Nobody is refused for one who
    came later, and has as many jobs of the same priority.

    After a job that took a second, the scheduler rests `rest_factor` seconds, which bounds its
    share of the process.
    """

    def __init__(
        self,
        max_running: int,
        *,
        max_wait_s: float,
        expected_job_s: float,
        rest_factor: float = 0.0,
    ) -> None:
        self._max_running = max_running
        self._max_wait_s = max_wait_s
        self._rest_factor = rest_factor
        # The mean time of a job, with the rest after it.
        self._job_s = expected_job_s
        self._queues: dict[Priority, _Queues[Result]] = {each: OrderedDict() for each in Priority}
        self._numbers = count()
        self._begun_count = 0
        self._running: set[asyncio.Task[None]] = set()

    async def run(
        self,
        client: str | None,
        work: Callable[[], Awaitable[Result]],
        *,
        key: Hashable = None,
        priority: Priority = Priority.NORMAL,
    ) -> Result:
        """Run a job when it is the first one of the client that is served next; return its result.

        Waiting jobs of a client with the same priority and key, which is not None, are one job.

        Raises:
            SchedulerFullError: the job did not run.
        """
        key = object() if key is None else key
        return await self._wait_for_result(_Job(client, key, work, priority, next(self._numbers)))

    @asynccontextmanager
    async def permit(
        self: "FairScheduler[None]", client: str | None, *, priority: Priority = Priority.NORMAL
    ) -> AsyncIterator[None]:
        """Wait for a permit, and hold it for the time of the context, which runs as a job.

        The time of the wait does not count for the deadline of the request.

        Raises:
            SchedulerFullError: the context did not begin.
        """
        ended = asyncio.Event()
        job = _Job(client, ended, _begin, priority, next(self._numbers), ended)
        try:
            with untimed():
                await self._wait_for_result(job)
            yield
        finally:
            ended.set()

    async def _wait_for_result(self, new_job: _Job[Result]) -> Result:
        job, loop = self._find_or_add(new_job), asyncio.get_running_loop()
        waiter: asyncio.Future[Result] = loop.create_future()
        job.waiters.add(waiter)
        self._start_jobs()
        if sum(map(self._waiting_count, Priority)) > self._max_waiting:
            self._refuse(self._job_to_refuse())
        timer = loop.call_later(self._wait_s(), self._leave, job, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._leave(job, waiter)

    def _wait_s(self) -> float:
        timeout_s = step_timeout_s()
        if timeout_s is None:
            return self._max_wait_s
        return min(self._max_wait_s, timeout_s - TIME_AFTER_WAIT_S)

    @property
    def _max_waiting(self) -> int:
        return int(self._max_wait_s * self._max_running / self._job_s)

    def _waiting_count(self, priority: Priority) -> int:
        return sum(map(len, self._queues[priority].values()))

    @property
    def _backlog_s(self) -> float:
        """The time until all jobs that wait now have begun."""
        return sum(map(self._waiting_count, Priority)) * self._job_s / self._max_running

    def _find_or_add(self, job: _Job[Result]) -> _Job[Result]:
        queues = self._queues[job.priority]
        queue = queues.setdefault(job.client, _Queue())
        return queue.setdefault(job.key, job)

    def _remove(self, job: _Job[Result]) -> None:
        queues = self._queues[job.priority]
        del queues[job.client][job.key]
        if not queues[job.client]:
            del queues[job.client]
        job.is_waiting = False

    def _leave(self, job: _Job[Result], waiter: asyncio.Future[Result]) -> None:
        """Wait no longer for a job, unless it has begun; drop it if nobody else waits for it."""
        if not job.is_waiting:
            return
        job.waiters.discard(waiter)
        if not waiter.done():
            waiter.set_exception(SchedulerFullError(self._retry_after_s(job)))
        if not job.waiters:
            self._remove(job)

    def _retry_after_s(self, job: _Job[Result]) -> float:
        """Return when a waiting job that is refused may come back.

        Those of a client come back as fast as its waiting jobs begin, once half of these have.
        """
        queues, now = self._queues[job.priority], monotonic()
        queue = queues[job.client]
        # Clients are served by round robin, and priorities that have jobs by their shares.
        share = job.priority.share / sum(each.share for each in Priority if self._queues[each])
        interval_s = min(
            self._backlog_s / len(queue), len(queues) * self._job_s / self._max_running / share
        )
        next_return_at = max(queue.last_return_at, now + len(queue) * interval_s / 2) + interval_s
        queue.last_return_at = min(next_return_at, now + MAX_RETRY_AFTER_S)
        if next_return_at > queue.last_return_at:
            return spread(MAX_RETRY_AFTER_S)
        return max(next_return_at - now, MIN_RETRY_AFTER_S)

    def _job_to_refuse(self) -> _Job[Result]:
        priority = next(
            each
            for each in reversed(Priority)
            if self._waiting_count(each) > each.share * self._max_waiting
        )
        queues = self._queues[priority].values()
        candidates = [(len(queue), next(reversed(queue.values()))) for queue in queues]
        return max(candidates, key=lambda each: (each[0], each[1].number))[1]

    def _refuse(self, job: _Job[Result]) -> None:
        for waiter in tuple(job.waiters):
            self._leave(job, waiter)

    def _start_jobs(self) -> None:
        while any(self._queues.values()) and len(self._running) < self._max_running:
            task = asyncio.create_task(self._run(self._take_next()))
            self._running.add(task)
            task.add_done_callback(self._on_end)

    def _take_next(self) -> _Job[Result]:
        queues = self._next_queues()
        client, queue = next(iter(queues.items()))
        job = next(iter(queue.values()))
        queues.move_to_end(client)
        self._remove(job)
        return job

    def _next_queues(self) -> _Queues[Result]:
        self._begun_count += 1
        higher, *lower = filter(None, self._queues.values())
        number = self._begun_count
        while lower and number % LOWER_INTERVAL == 0:
            higher, *lower = lower
            number //= LOWER_INTERVAL
        return higher

    async def _run(self, job: _Job[Result]) -> None:
        started_at = monotonic()
        try:
            result = await job.work()
        except Exception as error:
            for waiter in job.waiters:
                if not waiter.done():
                    waiter.set_exception(error)
        else:
            for waiter in job.waiters:
                if not waiter.done():
                    waiter.set_result(result)
        finally:
            for waiter in job.waiters:
                waiter.cancel()  # without effect, unless the work was cancelled
        if job.ended is not None:
            await job.ended.wait()
        if self._rest_factor:
            await asyncio.sleep(self._rest_factor * (monotonic() - started_at))
        self._job_s += (monotonic() - started_at - self._job_s) / JOBS_IN_MEAN

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start_jobs()
