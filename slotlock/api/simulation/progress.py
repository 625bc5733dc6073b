"""How far it is: one line that is redrawn on a terminal, else a line a second."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable

ON_A_TERMINAL_S, ELSEWHERE_S = 0.1, 1.0
CLEAR_LINE = "\r\x1b[K"


@contextlib.asynccontextmanager
async def progress(line: Callable[[], str], *, shown: bool) -> AsyncIterator[None]:
    """Show the line now and then, and once more in the end."""
    if not shown:
        yield
        return
    terminal = sys.stdout.isatty()

    def show() -> None:
        print(f"{CLEAR_LINE}{line()}" if terminal else line(), end="" if terminal else "\n")
        sys.stdout.flush()

    async def go_on() -> None:
        while True:
            await asyncio.sleep(ON_A_TERMINAL_S if terminal else ELSEWHERE_S)
            show()

    showing = asyncio.create_task(go_on())
    try:
        yield
    finally:
        showing.cancel()
        show()
        if terminal:
            print(flush=True)
