"""The admission queue as people see it: a ticket now, the answer later over their own socket."""

from collections.abc import Callable
from typing import Any

from slotlock.simulation.client.documents import REQUEST, TICKET_QUERY, TICKET_SUBSCRIPTION
from slotlock.simulation.client.http import GraphQLClient, UnknownFieldError
from slotlock.simulation.client.websocket import WebSocketClient
from slotlock.simulation.model.attempts import (
    FAILED,
    LOST,
    AttemptLog,
    BookingAttempt,
    Response,
    SimulatedUser,
)
from slotlock.simulation.model.plan import NoResponseError, SimulationError
from slotlock.simulation.report.steps import StepPrinter

TicketJson = dict[str, Any]


class TicketClient:
    """Asks by `requestBooking`, and follows what becomes of it."""

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
        """Let somebody have their socket before they need it. Errors: UnreachedError."""
        await self._socket_for(user).open()

    async def request_booking(
        self, attempt: BookingAttempt, booking_input: dict[str, Any]
    ) -> Response:
        """What came of asking, in the end. Errors: UnreachedError."""
        told: Response = await self._client.query(REQUEST, attempt.user.token, input=booking_input)
        if told["__typename"] != "Ticket":
            attempt.ticket_id = None  # one from before was lost
            return told
        ticket = dict(told)
        attempt.ticket_id = str(ticket["id"])
        self._attempt_log.record_progress(attempt, self._now())
        self._step_printer.print_queued(attempt, ticket["position"])
        while (final := _final_response(ticket)) is None:
            ticket = await self._follow_ticket(attempt, attempt.ticket_id) or {"status": LOST}
        return final

    async def load_response(self, attempt: BookingAttempt) -> Response | None:
        """What the ticket says when it is asked again; None if it has no final answer."""
        ticket = await self._client.query_with_retry(
            TICKET_QUERY, attempt.user.token, id=attempt.ticket_id
        )
        return _final_response(ticket or {"status": LOST})

    async def _follow_ticket(self, attempt: BookingAttempt, ticket_id: str) -> TicketJson | None:
        """The ticket's last state that was heard; None if there is no such ticket any more."""
        heard: list[TicketJson] = []

        def on_update(update: TicketJson) -> None:
            heard.append(update)
            self._attempt_log.record_progress(attempt, self._now())

        try:
            await self._socket_for(attempt.user).subscribe(
                TICKET_SUBSCRIPTION, on_update, id=ticket_id
            )
        except NoResponseError as error:
            self._attempt_log.record_no_response(error.kind)
            self._step_printer.print_no_response(attempt, str(error))
        finals = [ticket for ticket in heard if _final_response(ticket) is not None]
        if finals:
            attempt.extra_final_responses += len(finals) - 1
            return finals[0]
        token = attempt.user.token
        ticket: TicketJson | None = await self._client.query(TICKET_QUERY, token, id=ticket_id)
        return ticket

    def _socket_for(self, user: SimulatedUser) -> WebSocketClient:
        if user.token not in self._sockets:
            self._sockets[user.token] = self._create_socket(user.token)
        return self._sockets[user.token]


def _final_response(ticket: TicketJson) -> Response | None:
    match ticket["status"]:
        case "ANSWERED":
            outcome: Response = ticket["outcome"]
            return outcome
        case status if status in (LOST, FAILED):
            return {"__typename": status}
    return None


async def check_queue(client: GraphQLClient, token: str) -> None:
    """See that the server has a queue. Errors: SimulationError."""
    try:
        await client.query(TICKET_QUERY, token, id="none")
    except UnknownFieldError:
        raise SimulationError(
            "this server has no admission queue; let people ask --by lock or --by wait"
        ) from None
    except SimulationError:
        return  # it knows tickets, but not this one
