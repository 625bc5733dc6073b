"""How far it is: one line that is redrawn on a terminal, else a line a second."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

TERMINAL_INTERVAL_S, PLAIN_INTERVAL_S = 0.1, 1.0
CLEAR_LINE = "\r\x1b[K"


@contextlib.asynccontextmanager
async def show_progress(render: Callable[[], str], *, enabled: bool) -> AsyncIterator[None]:
    """Show the line now and then, and once more in the end."""
    if not enabled:
        yield
        return
    terminal = sys.stdout.isatty()

    def show() -> None:
        print(f"{CLEAR_LINE}{render()}" if terminal else render(), end="" if terminal else "\n")
        sys.stdout.flush()

    async def redraw() -> None:
        while True:
            await asyncio.sleep(TERMINAL_INTERVAL_S if terminal else PLAIN_INTERVAL_S)
            show()

    showing = asyncio.create_task(redraw())
    try:
        yield
    finally:
        showing.cancel()
        show()
        if terminal:
            print(flush=True)
