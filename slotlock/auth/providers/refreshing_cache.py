"""What a provider says, read by a task of its own, so that no request waits for it for long."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from slotlock.infrastructure.provider_client import ProviderUnavailableError, response_timeout_s
from slotlock.infrastructure.tasks import cancel_and_wait, ignore_unretrieved

log = logging.getLogger("slotlock.auth")

# A value that cannot be read again is used for so long. Sign-ins get their tokens from the provider
# itself, so that an old key lets nobody in.
MAX_AGE_S = 24 * 3600.0
# For so long from its begin, requests wait for a new value instead of an old one.
PATIENCE_S = 1.0

Value = TypeVar("Value")


class RefreshingCache(Generic[Value]):
    """A value that `read` reads, which raises ProviderUnavailableError; new for `ttl_s`."""

    def __init__(self, read: Callable[[], Awaitable[Value]], ttl_s: float, name: str) -> None:
        # When the last reading that succeeded began.
        self.began_at = -inf
        self._read = read
        self._ttl_s = ttl_s
        self._name = name
        self._value: Value | None = None
        self._task: asyncio.Task[Value] | None = None
        self._task_began_at = -inf

    async def get(self) -> Value:
        """Return the value, an old one if a new one takes long. Raises: ProviderUnavailableError.

        Without one, it waits until the deadline of the request.
        """
        if self._value is not None and monotonic() - self.began_at < self._ttl_s:
            return self._value
        task = self._begin()
        if self._value is None or monotonic() - self.began_at >= MAX_AGE_S:
            return await self._result_of(task)
        patience_s = self._task_began_at + PATIENCE_S - monotonic()
        await asyncio.wait([task], timeout=max(patience_s, 0))
        return self._value

    async def read_again(self) -> Value:
        """Return what is read from now on. Raises: ProviderUnavailableError."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=response_timeout_s())
        return await self._result_of(self._begin())

    def read_soon(self) -> None:
        """Begin to read, unless the value is new."""
        if monotonic() - self.began_at >= self._ttl_s:
            self._begin()

    async def close(self) -> None:
        """End a task that reads."""
        await cancel_and_wait(self._task)

    def _begin(self) -> asyncio.Task[Value]:
        if self._task is None or self._task.done():
            self._task_began_at = monotonic()
            # Without the deadline of this request.
            self._task = asyncio.create_task(self._run(), context=Context())
            self._task.add_done_callback(ignore_unretrieved)
        return self._task

    async def _run(self) -> Value:
        began_at = monotonic()
        try:
            self._value = await self._read()
        except ProviderUnavailableError as error:
            log.warning("could not read %s: %s", self._name, error)
            raise
        self.began_at = began_at
        return self._value

    async def _result_of(self, task: asyncio.Task[Value]) -> Value:
        timeout_s = response_timeout_s()
        await asyncio.wait([task], timeout=timeout_s)
        if not task.done():
            raise ProviderUnavailableError(f"{self._name} take more than {timeout_s:.1f} s")
        return task.result()
