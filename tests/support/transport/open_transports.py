"""A pytest plugin that fails the test whose event loop ends with open transports.

A garbage collection would warn of them, in any later test of the process.
"""

import asyncio
from asyncio.selector_events import BaseSelectorEventLoop
from typing import Any

_close = BaseSelectorEventLoop.close


def _open_transports(loop: Any) -> list[Any]:
    handles = [each for key in loop._selector.get_map().values() for each in key.data if each]
    owners = [getattr(each._callback, "__self__", None) for each in handles]
    return [each for each in owners if isinstance(each, asyncio.BaseTransport)]


def close_without_transports(loop: Any) -> None:
    """Close a loop. Raise AssertionError if it has transports, after closing them."""
    left = [] if loop.is_closed() else _open_transports(loop)
    shown = [f"{each} to {each.get_extra_info('peername')}" for each in left]
    for each in left:
        each.close() if isinstance(each, asyncio.ReadTransport) else each.abort()
    if left:
        loop.run_until_complete(asyncio.sleep(0))
    _close(loop)
    assert shown == [], "a test has to close its transports"


BaseSelectorEventLoop.close = close_without_transports  # type: ignore[method-assign, assignment]
