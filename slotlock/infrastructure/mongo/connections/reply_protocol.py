"""The protocol of a connection that sends one command at a time.

That of PyMongo reads a reply in two parts, and stops and starts reading for each reply, which
costs system calls. This one reads as long as it has the connection.
"""

import asyncio
import math
from collections.abc import Callable
from itertools import count
from struct import Struct

from pymongo.errors import ProtocolError

# An OP_MSG: the length, the number of the request, that of the request it responds to, the kind of
# message, flags, and the kind of the section that follows, which is one document.
HEADER = Struct("<iiiiIB")
LENGTH = Struct("<i")
OP_MSG = 2013
MAX_REQUEST_NUMBER = 2**31
# A command that waits for its reply notices a frozen server so much later than PyMongo.
CHECK_INTERVAL_S = 0.25

_request_numbers = count()


class ReplyProtocol(asyncio.Protocol):
    """Takes over an open connection from another protocol, until it is given back.

    If the connection is lost meanwhile, the other protocol learns of that too. A command fails soon
    after `is_frozen` has become true: such a server neither replies nor closes the connection.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        other_protocol: asyncio.BaseProtocol,
        max_message_size: int,
        is_frozen: Callable[[], bool],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._other_protocol = other_protocol
        self._max_message_size = max_message_size
        self._is_frozen = is_frozen
        self._timer: asyncio.TimerHandle | None = None
        self._received = bytearray()
        self._reply: asyncio.Future[bytearray] | None = None
        self._is_lost = False
        transport.set_protocol(self)
        transport.resume_reading()

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as the process knows."""
        return not self._transport.is_closing()

    def give_back(self) -> None:
        """Give the connection back to the other protocol. It must not wait for a reply."""
        if not self._is_lost:
            self._transport.set_protocol(self._other_protocol)

    async def exchange(self, document: bytes, timeout_s: float | None) -> memoryview:
        """Send a command, and return the document of its reply.

        After any error the connection must be closed: a late reply would be that of the next one.

        Raises:
            OSError: the connection is lost, or its server is frozen.
            TimeoutError: there was no reply in time.
            ProtocolError: this is not the reply to the command.
        """
        if not self.is_open:
            raise OSError("The connection is closed")
        number = next(_request_numbers) % MAX_REQUEST_NUMBER
        header = HEADER.pack(HEADER.size + len(document), number, 0, OP_MSG, 0, 0)
        self._reply = reply = self._loop.create_future()
        self._start_timer(reply, math.inf if timeout_s is None else self._loop.time() + timeout_s)
        try:
            self._transport.write(header + document)
            message = await reply
        finally:
            if self._timer is not None:
                self._timer.cancel()
        length, _, request_number, kind, _, _ = HEADER.unpack_from(message)
        if (length, request_number, kind) != (len(message), number, OP_MSG):
            raise ProtocolError("The reply of MongoDB is not that to the command")
        return memoryview(message)[HEADER.size :]

    def _start_timer(self, reply: "asyncio.Future[bytearray]", expires_at: float) -> None:
        check_at = min(self._loop.time() + CHECK_INTERVAL_S, expires_at)
        self._timer = self._loop.call_at(check_at, self._check, reply, expires_at)

    def _check(self, reply: "asyncio.Future[bytearray]", expires_at: float) -> None:
        if reply.done():
            return
        if self._loop.time() >= expires_at:
            reply.set_exception(TimeoutError("MongoDB did not reply in time"))
        elif self._is_frozen():
            reply.set_exception(OSError("The server is frozen"))
        else:
            self._start_timer(reply, expires_at)

    def data_received(self, data: bytes) -> None:
        """Take a part of a reply."""
        received = self._received
        received += data
        if len(received) < HEADER.size:
            return
        (length,) = LENGTH.unpack_from(received)
        if len(received) < length <= self._max_message_size:
            return
        self._received = bytearray()
        if self._reply is None or self._reply.done():
            self._transport.abort()  # nobody waits for it
        elif length > self._max_message_size:
            self._reply.set_exception(ProtocolError("The reply of MongoDB is too large"))
        else:
            self._reply.set_result(received)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the command that waits for its reply."""
        self._is_lost = True
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(exc or OSError("The connection was closed"))
        self._other_protocol.connection_lost(exc)
