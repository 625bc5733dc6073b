"""Booking through the admission queue: a ticket now, its outcome later by a subscription."""

from collections.abc import Callable
from typing import Any

from slotlock.simulation.client.documents import REQUEST, TICKET_QUERY, TICKET_SUBSCRIPTION
from slotlock.simulation.client.http import GraphQLClient
from slotlock.simulation.client.websocket import WebSocketClient
from slotlock.simulation.model.attempts import (
    FAILED,
    LOST,
    AttemptLog,
    BookingAttempt,
    Response,
    SimulatedUser,
)
from slotlock.simulation.model.plan import NoResponseError
from slotlock.simulation.report.progress import StepPrinter

TicketJson = dict[str, Any]


class TicketClient:
    """Requests bookings by `requestBooking` and follows their tickets."""

    def __init__(
        self,
        client: GraphQLClient,
        create_socket: Callable[[str], WebSocketClient],
        attempt_log: AttemptLog,
        step_printer: StepPrinter,
        now: Callable[[], float],
    ) -> None:
        self._client = client
        self._create_socket = create_socket
        self._attempt_log = attempt_log
        self._step_printer = step_printer
        self._now = now
        self._sockets: dict[str, WebSocketClient] = {}

    async def open_socket(self, user: SimulatedUser) -> None:
        """Open the socket of a user before the rush; raises NoResponseError."""
        await self._socket_for(user).open()

    async def request_booking(
        self, attempt: BookingAttempt, booking_input: dict[str, Any]
    ) -> Response:
        """Request a booking and return its outcome; raises NoResponseError."""
        response: Response = await self._client.query(
            REQUEST, attempt.user.token, input=booking_input
        )
        if response["__typename"] != "Ticket":
            attempt.ticket_id = None  # the ticket of an earlier request was lost
            return response
        ticket = dict(response)
        attempt.ticket_id = str(ticket["id"])
        self._attempt_log.record_progress(attempt, self._now())
        self._step_printer.print_queued(attempt, ticket["position"])
        while (outcome := _final_outcome(ticket)) is None:
            ticket = await self._follow_ticket(attempt, attempt.ticket_id) or {"status": LOST}
        return outcome

    async def load_outcome(self, attempt: BookingAttempt) -> Response | None:
        """Query the ticket of an attempt; None if it has no final outcome."""
        ticket = await self._client.query_with_retry(
            TICKET_QUERY, attempt.user.token, id=attempt.ticket_id
        )
        return _final_outcome(ticket or {"status": LOST})

    async def _follow_ticket(self, attempt: BookingAttempt, ticket_id: str) -> TicketJson | None:
        """Subscribe to a ticket and return its last state; None if the ticket is gone."""
        updates: list[TicketJson] = []

        def on_update(update: TicketJson) -> None:
            updates.append(update)
            self._attempt_log.record_progress(attempt, self._now())

        try:
            await self._socket_for(attempt.user).subscribe(
                TICKET_SUBSCRIPTION, on_update, id=ticket_id
            )
        except NoResponseError as error:
            self._attempt_log.record_no_response(error.kind)
            self._step_printer.print_no_response(attempt, str(error))
        final_updates = [ticket for ticket in updates if _final_outcome(ticket) is not None]
        if final_updates:
            attempt.extra_final_responses += len(final_updates) - 1
            return final_updates[0]
        token = attempt.user.token
        ticket: TicketJson | None = await self._client.query(TICKET_QUERY, token, id=ticket_id)
        return ticket

    def _socket_for(self, user: SimulatedUser) -> WebSocketClient:
        if user.token not in self._sockets:
            self._sockets[user.token] = self._create_socket(user.token)
        return self._sockets[user.token]


def _final_outcome(ticket: TicketJson) -> Response | None:
    match ticket["status"]:
        case "ANSWERED":
            outcome: Response = ticket["outcome"]
            return outcome
        case status if status in (LOST, FAILED):
            return {"__typename": status}
    return None
