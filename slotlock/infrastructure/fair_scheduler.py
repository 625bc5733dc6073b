"""Schedules the jobs of a scarce resource, which serves its clients by round robin.

Before each of its jobs, a client waits for at most one job of each other client. Urgent jobs go
first, but every fourth job that begins is another one. A job waits within the deadline of its
request, and one that nobody waits for any more does not run.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Generic, TypeVar

from slotlock.infrastructure.request_deadline import REQUEST_TIMEOUT_S, step_timeout_s

# What a request needs after the wait: for the job, and for the steps that follow.
TIME_AFTER_WAIT_S = 1.5
# One in so many jobs that begin is not urgent, if such a job waits.
OTHERS_INTERVAL = 4

Result = TypeVar("Result")


class SchedulerFullError(Exception):
    """The job did not run: too many are waiting, or it would have begun too late."""


@dataclass(slots=True, eq=False)
class _Job(Generic[Result]):
    client: str | None
    key: Hashable
    work: Callable[[], Awaitable[Result]]
    is_urgent: bool
    # Its place in the order of arrival.
    number: int
    is_waiting: bool = True
    # The requests that wait for the result.
    waiters: set[asyncio.Future[Result]] = field(default_factory=set)


# The waiting jobs of each client, both in order. A client has at least one.
_Queues = OrderedDict[str | None, dict[Hashable, _Job[Result]]]


class FairScheduler(Generic[Result]):
    """Runs up to `max_running` jobs at once; of those that wait, each client may have some.

    If too many wait, the newest job of the client with the most is refused, and of several such
    clients the newest of all: nobody is refused for one who came later and has as many. After a
    job that took a second, the scheduler rests `rest_factor` seconds, which bounds its share of
    the process.
    """

    def __init__(
        self,
        max_running: int,
        *,
        max_waiting: int,
        max_waiting_per_client: int,
        rest_factor: float = 0.0,
    ) -> None:
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._max_waiting_per_client = max_waiting_per_client
        self._rest_factor = rest_factor
        self._urgent: _Queues[Result] = OrderedDict()
        self._others: _Queues[Result] = OrderedDict()
        self._numbers = count()
        self._waiting_count = 0
        self._begun_count = 0
        self._running: set[asyncio.Task[None]] = set()

    async def run(
        self,
        client: str | None,
        work: Callable[[], Awaitable[Result]],
        *,
        key: Hashable = None,
        is_urgent: bool = False,
    ) -> Result:
        """Run a job when it is the first one of the client that is served next; return its result.

        Waiting jobs of a client with the same key, which is not None, are one job.

        Raises:
            SchedulerFullError: the job did not run.
        """
        job = self._find_or_add(_Job(client, key or object(), work, is_urgent, next(self._numbers)))
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Result] = loop.create_future()
        job.waiters.add(waiter)
        self._start_jobs()
        if self._waiting_count > self._max_waiting:
            self._refuse(self._newest_of_longest_queue())
        wait_s = (step_timeout_s() or REQUEST_TIMEOUT_S) - TIME_AFTER_WAIT_S
        timer = loop.call_later(wait_s, self._leave, job, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._leave(job, waiter)

    def _queues(self, job: _Job[Result]) -> _Queues[Result]:
        return self._urgent if job.is_urgent else self._others

    def _find_or_add(self, job: _Job[Result]) -> _Job[Result]:
        queues = self._queues(job)
        queue = queues.get(job.client, {})
        if job.key in queue:
            return queue[job.key]
        if len(queue) >= self._max_waiting_per_client:
            raise SchedulerFullError
        queue[job.key] = job
        queues[job.client] = queue
        self._waiting_count += 1
        return job

    def _remove(self, job: _Job[Result]) -> None:
        queues = self._queues(job)
        del queues[job.client][job.key]
        if not queues[job.client]:
            del queues[job.client]
        self._waiting_count -= 1
        job.is_waiting = False

    def _leave(self, job: _Job[Result], waiter: asyncio.Future[Result]) -> None:
        """Wait no longer for a job, unless it has begun; drop it if nobody else waits for it."""
        if not job.is_waiting:
            return
        job.waiters.discard(waiter)
        if not waiter.done():
            waiter.set_exception(SchedulerFullError())
        if not job.waiters:
            self._remove(job)

    def _newest_of_longest_queue(self) -> _Job[Result]:
        queues = [*self._others.values(), *self._urgent.values()]
        candidates = [(len(queue), next(reversed(queue.values()))) for queue in queues]
        return max(candidates, key=lambda each: (each[0], each[1].number))[1]

    def _refuse(self, job: _Job[Result]) -> None:
        for waiter in tuple(job.waiters):
            self._leave(job, waiter)

    def _start_jobs(self) -> None:
        while self._waiting_count and len(self._running) < self._max_running:
            task = asyncio.create_task(self._run(self._take_next()))
            self._running.add(task)
            task.add_done_callback(self._on_end)

    def _take_next(self) -> _Job[Result]:
        self._begun_count += 1
        first, second = self._urgent, self._others
        if self._begun_count % OTHERS_INTERVAL == 0:
            first, second = second, first
        queues = first or second
        client, queue = next(iter(queues.items()))
        job = next(iter(queue.values()))
        queues.move_to_end(client)
        self._remove(job)
        return job

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
        if self._rest_factor:
            await asyncio.sleep(self._rest_factor * (monotonic() - started_at))

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start_jobs()
