"""Reads of concurrent callers that travel together: one query for all that came meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

LARGEST_BATCH = 500


class BatchedRead(Generic[Key, Value]):
    """Answers each caller's key; what comes while a query is under way waits for the next."""

    def __init__(self, read: Callable[[list[Key]], Awaitable[dict[Key, Value]]]) -> None:
        self._read = read
        self._waiting: dict[Key, asyncio.Future[Value | None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def get(self, key: Key) -> Value | None:
        """The key's value as of now or later, None when there is none. Errors: those of `read`."""
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
            if self._reading is None:
                self._reading = asyncio.create_task(self._read_all())
        return await asyncio.shield(answer)

    async def _read_all(self) -> None:
        try:
            while self._waiting:
                keys = list(self._waiting)[:LARGEST_BATCH]
                batch = {key: self._waiting.pop(key) for key in keys}
                await self._read_batch(batch)
        finally:
            self._reading = None

    async def _read_batch(self, batch: dict[Key, asyncio.Future[Value | None]]) -> None:
        try:
            found = await self._read(list(batch))
        except Exception as error:
            for answer in batch.values():
                answer.set_exception(error)
                answer.exception()  # a caller who left must not warn of an error nobody awaits
        else:
            for key, answer in batch.items():
                answer.set_result(found.get(key))
