"""Futures whose result may never be awaited."""

import asyncio
from typing import Any


def ignore_unretrieved(future: asyncio.Future[Any]) -> None:
    """Mark the error of a future as retrieved, or asyncio would log it; a done callback."""
    if not future.cancelled():
        future.exception()
