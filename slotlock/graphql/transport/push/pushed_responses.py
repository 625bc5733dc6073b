"""The shared responses of a subscription, written to its socket as soon as they are published."""

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial

import orjson

from slotlock.graphql.execution.shared_operations import SharedStream
from slotlock.graphql.transport.push.direct_writes import DirectWrites
from slotlock.graphql.transport.push.fan_out import FanOutQueue

Deliver = Callable[[], None]


class SocketWriter:
    """Writes to one socket; stores the deliveries that wait until its client reads on."""

    __slots__ = ("_is_closed", "_is_writable", "_waiting", "deliver_soon", "write")

    def __init__(self, direct_writes: DirectWrites, fan_out: FanOutQueue) -> None:
        self.write = direct_writes.write
        # Runs a delivery with those to other sockets.
        self.deliver_soon = fan_out.add
        self._is_writable = direct_writes.is_writable
        self._waiting: list[Deliver] = []
        self._is_closed = False
        direct_writes.on_writable(self._resume)

    @property
    def is_writable(self) -> bool:
        """Whether the socket is open and its client reads."""
        return not self._is_closed and self._is_writable()

    def deliver_when_writable(self, deliver: Deliver) -> None:
        """Run a delivery once the client has read enough."""
        self._waiting.append(deliver)

    def close(self) -> None:
        """Deliver nothing more."""
        self._is_closed = True
        self._waiting.clear()

    def _resume(self) -> None:
        waiting, self._waiting = self._waiting, []
        for deliver in waiting:
            self.deliver_soon(deliver)


class PushedResponses:
    """Writes the responses of one subscription until its task is cancelled.

    While the client does not read, the responses stay pending: at most one for each slot.
    """

    __slots__ = ("_end", "_operation_id", "_stream", "_writer")

    def __init__(self, operation_id: str, stream: SharedStream, writer: SocketWriter) -> None:
        self._operation_id = operation_id
        self._stream = stream
        self._writer = writer
        # Done when the subscription fails, and at the moment when its task is cancelled.
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Write responses without end. Raises what a write or a response raises."""
        self._stream.on_update(partial(self._writer.deliver_soon, self._deliver))
        await self._end

    def _deliver(self) -> None:
        if self._end.done():
            return  # the client may use the id again
        try:
            self._write_pending()
        except Exception as error:  # fails this subscription alone
            self._end.set_exception(error)

    def _write_pending(self) -> None:
        while self._stream.has_pending:
            if not self._writer.is_writable:
                self._writer.deliver_when_writable(self._deliver)
                return
            payload = self._stream.take().encode()
            self._writer.write(_next_message(self._operation_id, payload))


@lru_cache(maxsize=4)
def _next_message(operation_id: str, payload: bytes) -> bytes:
    """Return the message with a response. Clients of one kind use equal operation ids."""
    message = {"id": operation_id, "type": "next", "payload": orjson.Fragment(payload)}
    return orjson.dumps(message)
