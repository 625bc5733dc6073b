"""The admission queue as people see it: a ticket now, the answer later over their own socket."""

from collections.abc import Callable
from typing import Any

from slotlock.api.simulation.documents import REQUEST, TICKET_NEWS, TICKET_NOW
from slotlock.api.simulation.http import Server, UnknownQuestionError
from slotlock.api.simulation.ledger import LOST, SET_ASIDE, Ask, Ledger, Person, Told
from slotlock.api.simulation.plan import SimulationError, UnreachedError
from slotlock.api.simulation.sockets import Socket
from slotlock.api.simulation.steps import Steps

Ticket = dict[str, Any]


class Tickets:
    """Asks by `requestBooking`, and follows what becomes of it."""

    def __init__(
        self,
        server: Server,
        socket_of: Callable[[str], Socket],
        ledger: Ledger,
        steps: Steps,
        now: Callable[[], float],
    ) -> None:
        self._server = server
        self._socket_of = socket_of
        self._ledger = ledger
        self._steps = steps
        self._now = now
        self._sockets: dict[str, Socket] = {}

    async def open_socket(self, person: Person) -> None:
        """Let somebody have their socket before they need it. Errors: UnreachedError."""
        await self._socket(person).open()

    async def ask(self, ask: Ask, asked: dict[str, Any]) -> Told:
        """What came of asking, in the end. Errors: UnreachedError."""
        told: Told = await self._server.ask(REQUEST, ask.person.token, input=asked)
        if told["__typename"] != "Ticket":
            ask.ticket_id = None  # one from before was lost
            return told
        ticket = dict(told)
        ask.ticket_id = str(ticket["id"])
        self._ledger.note_news(ask, self._now())
        self._steps.queues(ask, ticket["place"])
        while (final := _final(ticket)) is None:
            ticket = await self._followed(ask, ask.ticket_id) or {"status": LOST}
        return final

    async def now(self, ask: Ask) -> Told | None:
        """What the ticket says when it is asked again; None if it has no final answer."""
        ticket = await self._server.insist(TICKET_NOW, ask.person.token, id=ask.ticket_id)
        return _final(ticket or {"status": LOST})

    async def _followed(self, ask: Ask, ticket_id: str) -> Ticket | None:
        """The ticket's last state that was heard; None if there is no such ticket any more."""
        heard: list[Ticket] = []

        def hear(news: Ticket) -> None:
            heard.append(news)
            self._ledger.note_news(ask, self._now())

        try:
            await self._socket(ask.person).follow(TICKET_NEWS, hear, id=ticket_id)
        except UnreachedError as error:
            self._ledger.note_unanswered(error.kind)
            self._steps.unanswered(ask, str(error))
        finals = [ticket for ticket in heard if _final(ticket) is not None]
        if finals:
            ask.finals_too_many += len(finals) - 1
            return finals[0]
        token = ask.person.token
        ticket: Ticket | None = await self._server.ask(TICKET_NOW, token, id=ticket_id)
        return ticket

    def _socket(self, person: Person) -> Socket:
        if person.token not in self._sockets:
            self._sockets[person.token] = self._socket_of(person.token)
        return self._sockets[person.token]


def _final(ticket: Ticket) -> Told | None:
    match ticket["status"]:
        case "ANSWERED":
            outcome: Told = ticket["outcome"]
            return outcome
        case status if status in (LOST, SET_ASIDE):
            return {"__typename": status}
    return None


async def check_queue(server: Server, token: str) -> None:
    """See that the server has a queue. Errors: SimulationError."""
    try:
        await server.ask(TICKET_NOW, token, id="none")
    except UnknownQuestionError:
        raise SimulationError(
            "this server has no admission queue; let people ask --by lock or --by wait"
        ) from None
    except SimulationError:
        return  # it knows tickets, but not this one
