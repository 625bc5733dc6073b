"""Guards of live updates and against peers that do not read, and other times for peers."""

import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from slotlock.api.server import http_protocol, websockets
from slotlock.domain.booking.availability import Availability
from slotlock.services.live.availability_hub import AvailabilityHub

MISSED_PONG_MESSAGE = "a pong was missed"


class _PatientProtocol(websockets.StrictWebSocketProtocol):
    def keepalive_timeout(self) -> None:
        WebSocketsSansIOProtocol.keepalive_timeout(self)
        logging.getLogger("slotlock").info(MISSED_PONG_MESSAGE)


def wait_for_unresponsive_peers() -> None:
    """Close a peer that missed a pong only after it has read everything that was sent."""
    websockets.StrictWebSocketProtocol = _PatientProtocol  # type: ignore[misc]


def shorten_ping_interval() -> None:
    """Ping early enough for a test, with time to start an operation before the timeout."""
    websockets.PING_INTERVAL_S, websockets.PONG_TIMEOUT_S = 0.5, 3.0


class _SlowCloseProtocol(websockets.StrictWebSocketProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.close_timeout = 600.0


def lengthen_close_timeout() -> None:
    """Wait longer than any test for a peer to close, except during shutdown."""
    websockets.StrictWebSocketProtocol = _SlowCloseProtocol  # type: ignore[misc]


def lengthen_idle_time_at_stop() -> None:
    """Wait at a stop for a request on an idle connection for longer than a test needs."""
    http_protocol.IDLE_AT_STOP_S = 20.0


def _publish_nothing(self: AvailabilityHub, state: Availability) -> bool:
    return False


def drop_availability_updates() -> None:
    """Send subscribers the first state and no later one."""
    AvailabilityHub.publish = _publish_nothing  # type: ignore[method-assign]


GUARDS = {
    "unresponsive-peers": wait_for_unresponsive_peers,
    "availability-updates": drop_availability_updates,
}
FAULTS = {
    "pings": shorten_ping_interval,
    "slow-close": lengthen_close_timeout,
    "long-idle-stop": lengthen_idle_time_at_stop,
}
