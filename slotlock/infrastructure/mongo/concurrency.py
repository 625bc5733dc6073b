"""The gate in front of MongoDB: few operations at once, and each carried through once begun.

PyMongo's pool waits for a free connection in `asyncio.wait_for(condition.wait())`. On Python 3.11 a
caller who is cancelled there, or thousands who time out at once, can leave the pool's lock taken
for ever, and the whole process without MongoDB. So nobody is let in who would have to wait inside,
and nobody inside is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from slotlock.infrastructure.futures import ignore_unretrieved

# Whoever waits longer than an operation may take would not be served in time anyway.
WAIT_TIMEOUT_S = 5.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class MongoOverloadedError(Exception):
    """Too many are before this one; nothing was asked of MongoDB."""


class ConcurrencyLimiter:
    """Lets at most `width` operations in at once; the others wait in order, up to 5 s."""

    def __init__(self, max_concurrent: int) -> None:
        self._semaphore = asyncio.Semaphore(max_concurrent)

    async def run(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """The result; a caller who leaves does not stop the operation. Errors: GateTimeoutError."""
        task = asyncio.create_task(self._run_when_free(operation))
        task.add_done_callback(ignore_unretrieved)
        return await asyncio.shield(task)

    async def _run_when_free(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                await self._semaphore.acquire()
        except TimeoutError:
            raise MongoOverloadedError("MongoDB is not keeping up") from None
        try:
            return await operation()
        finally:
            self._semaphore.release()


class HasLimiter(Protocol):
    """A store with a gate."""

    limiter: ConcurrencyLimiter


class HasListLimiter(Protocol):
    """A store with a gate for what reads many documents, so that lists keep nobody from acting."""

    list_limiter: ConcurrencyLimiter


Store = TypeVar("Store", bound=HasLimiter)
Lister = TypeVar("Lister", bound=HasListLimiter)


def limited(
    method: Callable[Concatenate[Store, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Store, Arguments], Coroutine[Any, Any, Result]]:
    """Takes a store's method through the store's gate. One such method must not call another."""

    @wraps(method)
    async def run_limited(
        self: Store, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.limiter.run(lambda: method(self, *args, **kwargs))

    return run_limited


def limited_listing(
    method: Callable[Concatenate[Lister, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Lister, Arguments], Coroutine[Any, Any, Result]]:
    """Takes a store's method through its gate for lists."""

    @wraps(method)
    async def run_limited(
        self: Lister, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.list_limiter.run(lambda: method(self, *args, **kwargs))

    return run_limited
