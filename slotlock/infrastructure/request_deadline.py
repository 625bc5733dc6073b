"""One deadline for each request, which its steps share.

The deadline begins with the request. Each step gets the time that the earlier ones have left, and
the time for which the caller is willing to wait is added. One timer watches all requests of a
process, because a timer for each would cost a tenth of the CPU time of a booking.

A batch serves several requests, so that its deadline is its own. Its callers leave at theirs.

The deadline is the one object of a request that every step can find. It therefore also says which
request this is, for the log and the metrics.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from types import TracebackType
from typing import Self

from slotlock.domain.shared.value_object import value_object

# A caller gets a response within this time and its own wait, whatever MongoDB and Redis do.
REQUEST_TIMEOUT_S = 6.0
# Steps end so much earlier, because their own errors are better responses.
RESERVE_S = 0.5
# A request may exceed its deadline by so much.
CHECK_INTERVAL_S = 0.25
# The shortest time that a step gets. MongoDB's driver takes 0 as no limit.
MIN_STEP_S = 0.001

_current: ContextVar["RequestDeadline | None"] = ContextVar("request_deadline", default=None)


class RequestTimeoutError(Exception):
    """A request was not over at its deadline. What it had sent may still happen."""


class RequestDeadline:
    """When a request has to end, as the time of the monotonic clock.

    It begins when it is created, and the rest of this task and its tasks share it. As a context
    manager, it cancels the task at the deadline and raises RequestTimeoutError.
    """

    __slots__ = (
        "_deadlines",
        "_has_expired",
        "_task",
        "_waits_until",
        "at",
        "identity",
        "operation_name",
        "request_id",
        "started_at",
    )

    def __init__(self, deadlines: "RequestDeadlines", request_id: str = "") -> None:
        self.started_at = monotonic()
        self.at = self.started_at + REQUEST_TIMEOUT_S
        self.request_id = request_id
        # The caller, None before the authentication, or why there is none.
        self.identity: object = None
        self.operation_name: str | None = None
        self._deadlines = deadlines
        self._task: asyncio.Task[object] | None = None
        self._waits_until = 0.0
        self._has_expired = False
        _current.set(self)

    def __enter__(self) -> None:
        """Expire at the deadline, until the context ends."""
        deadlines = self._deadlines
        if deadlines.loop is None:
            deadlines.loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(deadlines.loop)
        deadlines.running.add(self)
        if deadlines.timer is None:
            deadlines.start_timer()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        self._deadlines.running.discard(self)
        if self._has_expired and task is not None:
            self._has_expired = False
            others = task.uncancel()
            if error_type is asyncio.CancelledError and not others:
                raise RequestTimeoutError("the request took too long") from error

    @property
    def is_running(self) -> bool:
        """Whether the steps of the request are limited now."""
        return self._task is not None

    def allow_wait(self, wait_s: float) -> None:
        """Add a wait of the caller that begins now. A later part of the same wait adds nothing."""
        now = monotonic()
        waits_until = now + wait_s
        self.at += max(waits_until - max(self._waits_until, now), 0.0)
        self._waits_until = max(waits_until, self._waits_until)

    def expire(self) -> None:
        """Cancel the task, once."""
        if self._task is not None and not self._has_expired:
            self._has_expired = True
            self._task.cancel()


class RequestDeadlines:
    """The deadlines of the requests that are in progress in this process."""

    def __init__(self) -> None:
        # Python looks the process up in each search for the loop, which takes a system call.
        self.loop: asyncio.AbstractEventLoop | None = None
        self.running: set[RequestDeadline] = set()
        self.timer: asyncio.TimerHandle | None = None

    def begin(self, request_id: str = "") -> RequestDeadline:
        """Begin the deadline of a request, which the rest of this task and its tasks share."""
        return RequestDeadline(self, request_id)

    def start_timer(self) -> None:
        """Check soon which requests are due, again and again while any runs."""
        loop = asyncio.get_running_loop()
        self.timer = loop.call_later(CHECK_INTERVAL_S, self._expire_due)

    def _expire_due(self) -> None:
        now, self.timer = monotonic(), None
        for deadline in tuple(self.running):
            if deadline.at <= now:
                deadline.expire()
        if self.running:
            self.start_timer()


# Returns the deadline of the request of this task, which says which request it is.
current_request = _current.get


def within_deadline() -> AbstractContextManager[None]:
    """Return a context that ends at the deadline of the request, or never without one.

    Raises:
        RequestTimeoutError: on leaving, if the deadline was over.
    """
    return _current.get() or nullcontext()


def allow_wait(wait_s: float) -> None:
    """Let the request of this task last longer: see `RequestDeadline.allow_wait`."""
    deadline = _current.get()
    if deadline is not None:
        deadline.allow_wait(wait_s)


def step_timeout_s() -> float | None:
    """Return how long a step of the request in progress may take; None without a request."""
    deadline = _current.get()
    if deadline is None or not deadline.is_running or deadline.at == math.inf:
        return None
    left_s = deadline.at - monotonic() - RESERVE_S
    return max(left_s, MIN_STEP_S)


@contextmanager
def untimed() -> Iterator[None]:
    """Do not count this time for the request, which has its whole time again afterwards.

    A step with a limit of its own belongs here. On a busy machine, what came before it may have
    taken all of the time of the request.
    """
    deadline = _current.get()
    if deadline is None:
        yield
        return
    started_at, at = monotonic(), deadline.at
    deadline.at = math.inf
    try:
        yield
    finally:
        now = monotonic()
        deadline.at = max(at + now - started_at, now + REQUEST_TIMEOUT_S)


@value_object
class WaitDeadline:
    """The end of the time that a caller waits: an instant of the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline so many seconds from now."""
        return cls(monotonic() + seconds)

    @property
    def remaining_s(self) -> float:
        """The seconds that are left; 0 once it has passed."""
        return max(self.at - monotonic(), 0.0)
