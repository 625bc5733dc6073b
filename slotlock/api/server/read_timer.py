"""The time that a client has to read a response; uvicorn would wait without limit."""

import asyncio
import sys
from array import array
from contextlib import suppress

from slotlock.graphql.transport.shutdown import SHUTDOWN_SEND_TIMEOUT_S

if sys.platform != "win32":
    import fcntl
    import termios

# A client that reads less than this within the timeout does not read.
MIN_READ_BYTES = 16 * 1024


class ReadTimer:
    """Aborts a connection whose client makes no progress, while the timer runs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, timeout_s: float
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._timeout_s = timeout_s
        self._handle: asyncio.TimerHandle | None = None
        self._stopping = False

    def start(self) -> None:
        """Give the client the timeout to read on from now."""
        self.cancel()
        self._handle = self._loop.call_later(
            self._timeout_s, self._check_progress, self._queued_bytes()
        )

    def start_for_shutdown(self) -> None:
        """Give the client SHUTDOWN_SEND_TIMEOUT_S to read on, again and again until the end."""
        if not self._stopping:
            self._stopping, self._timeout_s = True, SHUTDOWN_SEND_TIMEOUT_S
            self.start()

    def stop(self) -> None:
        """Stop the timer, as the client has read; except during a shutdown."""
        if not self._stopping:
            self.cancel()

    def cancel(self) -> None:
        """Stop the timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _check_progress(self, unread_before: int) -> None:
        read_bytes = unread_before - self._queued_bytes()
        if self._stopping:
            # The time is short, so any progress counts; a response may also have no bytes yet.
            is_stuck = read_bytes <= 0 < unread_before
        else:
            is_stuck = read_bytes < MIN_READ_BYTES
        if is_stuck:
            self._transport.abort()  # close() would wait until the client has read the rest
        else:
            self.start()

    def _queued_bytes(self) -> int:
        """Return how many bytes the client has not read, in this process and in the kernel.

        The kernel takes more only after much of its queue is gone. The buffer of the process alone
        would show no progress for minutes while a slow client reads.
        """
        queued = array("i", [0])
        if sys.platform != "win32":  # Windows does not report its queue
            with suppress(OSError):
                fcntl.ioctl(self._transport.get_extra_info("socket"), termios.TIOCOUTQ, queued)
        return self._transport.get_write_buffer_size() + queued[0]
