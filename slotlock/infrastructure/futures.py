"""Futures whose result may never be awaited."""

import asyncio
from typing import TypeVar

Result = TypeVar("Result")


def ignore_unretrieved(future: asyncio.Future[Result]) -> None:
    """Mark the error of a future as retrieved, or asyncio would log it; a done callback."""
    if not future.cancelled():
        future.exception()
