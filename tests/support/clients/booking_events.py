"""The booking events of a user, from the moment in which their subscription runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import WATCH_MY_BOOKINGS, BookingClient
from tests.support.clients.client import Json, WebSocketTestClient, open_websocket

Event = tuple[str, str | None, str, str]


class BookingEventStream:
    """The booking events of one user, without the probes."""

    def __init__(self, opened: WebSocketTestClient, probes: set[str]) -> None:
        self._socket = opened
        self._probes = probes

    async def next_event(self) -> Json:
        """Return the next event that does not concern a probe booking."""
        event = await self.next_event_or_end()
        assert event is not None
        return event

    async def next_event_or_end(self) -> Json | None:
        """Return the next event that does not concern a probe booking; None at the end."""
        while (message := await self._socket.receive())["type"] != "complete":
            assert "errors" not in message["payload"], message
            event: Json = message["payload"]["data"]["myBookings"]
            if event["booking"]["slot"]["id"] not in self._probes:
                return event
        return None

    async def next_event_summary(self) -> Event:
        """Return the action, its author, the slot id and the current status."""
        event = await self.next_event()
        booking, by = event["booking"], event["by"] and event["by"]["id"]
        return event["action"], by, booking["slot"]["id"], booking["status"]


@asynccontextmanager
async def watch_bookings(
    app: AppProcess,
    user: BookingClient,
    organizer: BookingClient,
    *,
    include_own: bool = False,
    read_for: str | None = None,
) -> AsyncIterator[BookingEventStream]:
    """Open a subscription to the bookings of a user, or a dependent of theirs, once it runs."""
    async with open_websocket(app, user.token) as opened:
        await opened.subscribe("1", WATCH_MY_BOOKINGS, own=include_own, user=read_for)
        # Nothing confirms that a subscription has started, except an event of a probe booking.
        probes, user_id, begun = set[str](), read_for or await user.fetch_user_id(), False
        while not begun:
            probes.add(probe := await organizer.add_slot())
            await organizer.book_slot(probe, userId=user_id)
            try:
                async with asyncio.timeout(3):
                    begun = (await opened.next_result())["booking"]["slot"]["id"] in probes
            except TimeoutError:
                continue
        yield BookingEventStream(opened, probes)
