"""Futures whose result nobody may ever await."""

import asyncio
from typing import Any


def ignore_unretrieved(future: asyncio.Future[Any]) -> None:
    """Keep asyncio from logging the error of a future that nobody awaits; a done callback."""
    if not future.cancelled():
        future.exception()
