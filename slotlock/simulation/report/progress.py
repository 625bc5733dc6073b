"""The progress line: redrawn on a terminal, otherwise printed every second."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

TERMINAL_INTERVAL_S, PLAIN_INTERVAL_S = 0.1, 1.0
CLEAR_LINE = "\r\x1b[K"


@contextlib.asynccontextmanager
async def show_progress(render: Callable[[], str], *, enabled: bool) -> AsyncIterator[None]:
    """Show the rendered line periodically, and once more at the end."""
    if not enabled:
        yield
        return
    is_terminal = sys.stdout.isatty()

    def show() -> None:
        print(
            f"{CLEAR_LINE}{render()}" if is_terminal else render(), end="" if is_terminal else "\n"
        )
        sys.stdout.flush()

    async def redraw() -> None:
        while True:
            await asyncio.sleep(TERMINAL_INTERVAL_S if is_terminal else PLAIN_INTERVAL_S)
            show()

    task = asyncio.create_task(redraw())
    try:
        yield
    finally:
        task.cancel()
        show()
        if is_terminal:
            print(flush=True)
