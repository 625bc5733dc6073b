"""Background tasks and their end."""

import asyncio
from typing import TypeVar

# A task that still runs this long after it was cancelled is cancelled again.
CANCEL_AGAIN_S = 1.0

Result = TypeVar("Result")


async def cancel_and_wait(
    task: asyncio.Task[Result] | None, patience_s: float = CANCEL_AGAIN_S
) -> None:
    """Cancel a task, if there is one, and wait until it has ended, whatever its result.

    A library may swallow a cancellation, for example `asyncio.wait_for` of Python 3.11 does if the
    awaited result arrives at the same moment. Therefore a task that goes on is cancelled again each
    time `patience_s` have passed.
    """
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=patience_s)
