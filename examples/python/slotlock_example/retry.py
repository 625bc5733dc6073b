"""Sends a request again when that helps. With an idempotency key, a mutation has one effect."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")

MAX_ATTEMPTS = 8
BUSY_CODES = ("LOCKED", "QUEUE_FULL")
RETRYABLE_CODES = (None, "INTERNAL", "OUTCOME_UNKNOWN", "RATE_LIMITED")


class ApiError(Exception):
    """A request that failed; without a response, `code` is None."""

    def __init__(
        self, message: str, code: str | None = None, retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.retry_after_ms = code, retry_after_ms

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code in RETRYABLE_CODES


def backoff_s(retries: int) -> float:
    """Return an exponential backoff from half a second to 30 seconds, with full jitter."""
    return random.uniform(0, min(30, 0.5 * 2**retries))


async def with_retry(
    send: Callable[Arguments, Awaitable[Any]], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Any:
    """Return the outcome of the last attempt; raises its ApiError."""
    for attempt in range(1, MAX_ATTEMPTS):
        try:
            outcome = await send(*args, **kwargs)
        except ApiError as error:
            if not error.is_retryable:
                raise
            retry_after_ms = error.retry_after_ms
        else:
            if outcome is None or outcome.get("code") not in BUSY_CODES:
                return outcome
            retry_after_ms = outcome["retryAfterMs"]
        await asyncio.sleep(_with_jitter(retry_after_ms) if retry_after_ms else backoff_s(attempt))
    return await send(*args, **kwargs)


def _with_jitter(retry_after_ms: int) -> float:
    """Return seconds; clients that were refused together do not come back together."""
    return retry_after_ms / 1000 * random.uniform(1, 1.5)
