"""A large text that many read and that takes seconds to write."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable


class LatestText:
    """The text that was read last, which one caller at a time writes if its key is another.

    After a publication, thousands read the same record: for 20,000 users it has 23 MB.
    """

    def __init__(self) -> None:
        self._writing = asyncio.Lock()
        self._key: Hashable = None
        self._text = ""

    async def get(self, key: Hashable, write: Callable[[], Awaitable[str]]) -> str:
        """Return the text with this key."""
        async with self._writing:
            if self._key != key:
                self._text, self._key = await write(), key
            return self._text
