"""`GET /personal-data` and `/personal-data/{user}`: all data about one user, as JSON.

The document is sent while it is read, so that memory use does not depend on the number of bookings.
"""

import json
from collections.abc import AsyncIterator
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import require_caller, verify_and_charge
from slotlock.api.endpoints.downloads import content_disposition
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.domain.admission.tickets import TICKET_TTL, TicketRef
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import RETRY_AFTER_HEADERS
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.times import format_time
from slotlock.graphql.transport.http_requests import HttpError
from slotlock.infrastructure.mongo.users.personal_data import PersonalDataQueries
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.services.container import Services


class PersonalDataEndpoint:
    """The ASGI application of every path at and under `/personal-data`."""

    def __init__(
        self,
        services: Services,
        auth: Auth,
        rate_limits: OperationRateLimits,
        queries: PersonalDataQueries,
    ) -> None:
        self._services = services
        self._auth = auth
        self._rate_limits = rate_limits
        self._queries = queries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        response = await respond_in_time("personal data", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        costs = {OperationKind.FILE: 1}
        token = await verify_and_charge(self._auth, self._rate_limits, request, costs)
        if request.method != "GET":
            raise method_not_allowed("GET")
        caller = await require_caller(self._auth, token)
        user = await self._find_user(caller, request.path_params.get("user"))
        try:
            since = self._services.now() - TICKET_TTL
            tickets = await self._services.ticket_index.find(user.id, since)
        except RedisUnavailableError:
            text = "The tickets cannot be read now. Please try again."
            raise HttpError(503, text, RETRY_AFTER_HEADERS) from None
        file_name = f"personal-data-{self._services.now():%Y-%m-%d}.json"
        return StreamingResponse(
            self._chunks(caller, user.id, [_ticket_fields(ticket) for ticket in tickets]),
            media_type="application/json",
            headers={
                "Content-Disposition": content_disposition(user.name, file_name),
                "Cache-Control": "no-store",
            },
        )

    async def _find_user(self, caller: Caller, global_id: str | None) -> User:
        """Return whose data to send. Raises HttpError: 403 or 404."""
        user_id = caller.user_id if global_id is None else ids.parse_user_id(global_id)
        if user_id != caller.user_id and caller.role is not Role.ADMIN:
            raise HttpError(403, "Only admins may do this.")
        user = user_id and await self._auth.users.find_soon(user_id)
        if not user:
            raise HttpError(404, "There is no such user.")
        return user

    async def _chunks(
        self, caller: Caller, user_id: UserId, tickets: list[dict[str, str]]
    ) -> AsyncIterator[str]:
        """Yield the parts of the document. It ends early, and invalid, with the session."""
        yield '{"tickets": ' + json.dumps(tickets)
        for name, read in self._queries.sections(user_id):
            if not await session_still_valid(self._auth, caller):
                return
            yield f',\n"{name}": ['
            separator = "\n"
            async for record in read():
                yield separator + json.dumps(record, default=_to_json, ensure_ascii=False)
                separator = ",\n"
            yield "]"
        yield "}\n"


def _ticket_fields(ticket: TicketRef) -> dict[str, str]:
    return {"slot": ticket.slot_id, "requestedAt": format_time(ticket.requested_at)}


def _to_json(value: object) -> str:
    return format_time(value) if isinstance(value, datetime) else str(value)
