"""Guards against peers that do not listen, switched off; and pings that come soon."""

import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from slotlock.api import sockets

MISSED = "a pong was missed"


class _Patient(sockets.SocketProtocol):
    def keepalive_timeout(self) -> None:
        WebSocketsSansIOProtocol.keepalive_timeout(self)
        logging.getLogger("slotlock").info(MISSED)


def wait_for_the_deaf() -> None:
    """Close a peer that answers no ping in order, once it has read what was sent."""
    sockets.SocketProtocol = _Patient  # type: ignore[misc]


def ping_soon() -> None:
    """Pings within a test's patience, and time to begin something before they count."""
    sockets.PING_EVERY_S, sockets.PONG_WITHIN_S = 0.5, 3.0


class _Unhurried(sockets.SocketProtocol):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.close_timeout = 600.0


def close_without_hurry() -> None:
    """Only a stop is in a hurry; who reads nothing is waited for as long as a test lasts."""
    sockets.SocketProtocol = _Unhurried  # type: ignore[misc]


GUARDS = {"deaf": wait_for_the_deaf}
MISHAPS = {"pings": ping_soon, "unhurried": close_without_hurry}
