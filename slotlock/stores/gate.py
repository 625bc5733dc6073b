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

# Whoever waits longer than an operation may take would not be served in time anyway.
LONGEST_WAIT_S = 5.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class GateTimeoutError(Exception):
    """Too many are before this one; nothing was asked of MongoDB."""


class Gate:
    """Lets at most `width` operations in at once; the others wait in order, up to 5 s."""

    def __init__(self, width: int) -> None:
        self._places = asyncio.Semaphore(width)

    async def carry(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """The result; a caller who leaves does not stop the operation. Errors: GateTimeoutError."""
        task = asyncio.create_task(self._in_turn(operation))
        task.add_done_callback(_look_at_error)
        return await asyncio.shield(task)

    async def _in_turn(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self._places.acquire()
        except TimeoutError:
            raise GateTimeoutError("MongoDB is not keeping up") from None
        try:
            return await operation()
        finally:
            self._places.release()


class Gated(Protocol):
    """A store with a gate."""

    gate: Gate


class Listing(Protocol):
    """A store with a gate for what reads many documents, so that lists keep nobody from acting."""

    lists: Gate


Store = TypeVar("Store", bound=Gated)
Lister = TypeVar("Lister", bound=Listing)


def gated(
    method: Callable[Concatenate[Store, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Store, Arguments], Coroutine[Any, Any, Result]]:
    """Takes a store's method through the store's gate. One such method must not call another."""

    @wraps(method)
    async def through_the_gate(
        self: Store, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.gate.carry(lambda: method(self, *args, **kwargs))

    return through_the_gate


def listed(
    method: Callable[Concatenate[Lister, Arguments], Awaitable[Result]],
) -> Callable[Concatenate[Lister, Arguments], Coroutine[Any, Any, Result]]:
    """Takes a store's method through its gate for lists."""

    @wraps(method)
    async def through_the_gate(
        self: Lister, /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        return await self.lists.carry(lambda: method(self, *args, **kwargs))

    return through_the_gate


def _look_at_error(task: asyncio.Task[Any]) -> None:
    # A caller who left must not be warned of.
    if not task.cancelled():
        task.exception()
