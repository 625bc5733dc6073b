"""Limits how many operations on MongoDB run at once, and completes each one that started.

Callers wait in PyMongo's pool in no order, and one that is cancelled closes a connection. Therefore
no more operations start than there are connections, and no operation is cancelled.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from pymongo import timeout

from slotlock.infrastructure.fair_scheduler import spread
from slotlock.infrastructure.request_deadline import step_timeout_s
from slotlock.infrastructure.tasks import ignore_unretrieved

# An operation takes at most as long, so that waiting longer would not help.
WAIT_TIMEOUT_S = 5.0
# Of what the deadline leaves. An operation that began just before it would have no known outcome.
WAIT_SHARE = 0.75

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class MongoOverloadedError(Exception):
    """Too many operations are waiting, so nothing was sent to MongoDB.

    `retry_after_ms` is about the time for which the operations wait.
    """

    def __init__(self) -> None:
        super().__init__("MongoDB is overloaded")
        self.retry_after_ms = round(spread(WAIT_TIMEOUT_S) * 1000)


class NestedOperationError(Exception):
    """An operation waits for the limiter that it occupies: a programming error."""


_entered: ContextVar[frozenset["ConcurrencyLimiter"]] = ContextVar("entered", default=frozenset())


class ConcurrencyLimiter:
    """Runs at most `max_concurrent` operations at once; others wait in order, up to 5 s.

    An operation of a request gets the time that its deadline leaves, and waits for at most three
    quarters of it.

    With `within`, each operation also counts for that wider limiter.
    """

    def __init__(self, max_concurrent: int, within: "ConcurrencyLimiter | None" = None) -> None:
        self._semaphore = asyncio.Semaphore(max_concurrent)
        self._within = within

    async def run(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Return the operation's result. It completes even if the caller is cancelled.

        Raises:
            MongoOverloadedError: other operations took longer than 5 s, or than the request may
                wait.
            NestedOperationError: it was called within an operation of this limiter, and could wait
                for itself.
        """
        if self in _entered.get():
            raise NestedOperationError
        task = asyncio.create_task(self._run_when_free(operation))
        task.add_done_callback(ignore_unretrieved)
        return await asyncio.shield(task)

    async def _run_when_free(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        if self._semaphore.locked():
            await self._wait_until_free()
        else:
            await self._semaphore.acquire()  # at once, so that a timeout would only cost time
        try:
            _entered.set(_entered.get() | {self})  # the task has a context of its own
            if self._within:
                return await self._within.run(operation)
            timeout_s = step_timeout_s()
            with nullcontext() if timeout_s is None else timeout(timeout_s):
                return await operation()
        finally:
            self._semaphore.release()

    async def _wait_until_free(self) -> None:
        try:
            async with asyncio.timeout(max_wait_s()):
                await self._semaphore.acquire()
        except TimeoutError:
            raise MongoOverloadedError from None


def max_wait_s() -> float:
    """Return how long an operation of the current request may wait."""
    return min(WAIT_TIMEOUT_S, WAIT_SHARE * (step_timeout_s() or math.inf))


class HasLimiter(Protocol):
    """A repository with a limiter."""

    limiter: ConcurrencyLimiter


class HasListLimiter(Protocol):
    """A repository with a limiter for reads of many documents, which must not delay bookings."""

    list_limiter: ConcurrencyLimiter


Repository = TypeVar("Repository", bound=HasLimiter)
ListRepository = TypeVar("ListRepository", bound=HasListLimiter)


def limited(
    method: Callable[Concatenate[Repository, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Repository, Arguments], Coroutine[None, None, Result]]:
    """Run a repository's method within its limiter."""

    @wraps(method)
    async def run_limited(
        self: Repository, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.limiter.run(lambda: method(self, *args, **kwargs))

    return run_limited


def limited_listing(
    method: Callable[Concatenate[ListRepository, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[ListRepository, Arguments], Coroutine[None, None, Result]]:
    """Run a repository's method within its limiter for lists."""

    @wraps(method)
    async def run_limited(
        self: ListRepository, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.list_limiter.run(lambda: method(self, *args, **kwargs))

    return run_limited
