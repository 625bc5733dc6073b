"""The shared responses of a subscription, written to its socket as soon as they are published."""

import asyncio
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import orjson

from slotlock.graphql.execution.shared_operations import SharedOperation
from slotlock.graphql.transport.push.direct_writes import DirectWrites
from slotlock.services.live.fan_out import FanOutQueue
from slotlock.services.live.latest_states import LatestStates

Deliver = Callable[[], None]


class SocketWriter:
    """Writes to one socket; stores the deliveries that wait until its client reads on."""

    __slots__ = ("_waiting", "deliver_soon", "frame", "is_writable", "write")

    def __init__(self, direct_writes: DirectWrites, fan_out: FanOutQueue) -> None:
        self.frame = direct_writes.frame
        self.write = direct_writes.write
        # Whether the socket is open and its client reads.
        self.is_writable = direct_writes.is_writable
        # Runs a delivery with those to other sockets.
        self.deliver_soon = fan_out.add
        self._waiting: list[Deliver] = []
        direct_writes.on_writable(self._resume)

    def deliver_when_writable(self, deliver: Deliver) -> None:
        """Run a delivery once the client has read enough."""
        self._waiting.append(deliver)

    def close(self) -> None:
        """Deliver nothing more."""
        self.is_writable = _never
        self._waiting.clear()

    def _resume(self) -> None:
        waiting, self._waiting = self._waiting, []
        for deliver in waiting:
            self.deliver_soon(deliver)


class PushedResponses:
    """Writes the responses of one subscription until it is over or its task is cancelled.

    While the client does not read, the states stay pending: at most one for each slot.
    """

    __slots__ = ("_end", "_operation_id", "_shared", "_subscription", "_writer")

    def __init__(
        self,
        operation_id: str,
        subscription: LatestStates[Any, Any],
        shared: SharedOperation,
        writer: SocketWriter,
    ) -> None:
        self._operation_id = operation_id
        self._subscription = subscription
        self._shared = shared
        self._writer = writer
        # Done when the subscription fails or is over, and at the moment when its task is cancelled.
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Write responses until it is over. Raises what a write or a response raises."""
        self._subscription.on_update(partial(self._writer.deliver_soon, self._deliver))
        await self._end

    def _deliver(self) -> None:
        """Write the response to the oldest pending state; thousands of sockets do it in a row."""
        if self._end.done():
            return  # the client may use the id again
        writer = self._writer
        if not writer.is_writable():
            writer.deliver_when_writable(self._deliver)
            return
        try:
            payload = self._shared.respond(self._subscription.take()).encode()
            writer.write(_next_frame(self._operation_id, payload, writer.frame))
        except Exception as error:  # fails this subscription alone
            self._end.set_exception(error)
            return
        if self._subscription.has_pending:
            writer.deliver_soon(self._deliver)
        elif self._subscription.is_over:
            self._end.set_result(None)


@lru_cache(maxsize=4)
def _next_frame(operation_id: str, payload: bytes, frame: Callable[[bytes], bytes]) -> bytes:
    """Return the bytes of the message with a response.

    Many sockets are sent the same bytes: clients of one kind use equal operation ids.
    """
    message = {"id": operation_id, "type": "next", "payload": orjson.Fragment(payload)}
    return frame(orjson.dumps(message))


def _never() -> bool:
    return False
