"""`/calendars/...`: a person's own by its private address, and what is published."""

import hashlib
import re
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotlock.api.calendars.ical import render_calendar
from slotlock.api.endpoints.organizer_endpoint import (
    BEARER_CHALLENGE,
    HttpError,
    charge_rate,
    handle_errors,
    optional_caller,
)
from slotlock.auth import calendar_tokens
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import calendars

MAX_AGE = timedelta(minutes=5)
# As many reads: what one costs that has some hundred events.
CALENDAR_READ_COST = 10
_PRIVATE = re.compile(r"private/([^/]{1,100})\.ics")
_CAMPAIGN = re.compile(r"campaigns/([^/]{1,100})\.ics")


class CalendarEndpoint:
    """The ASGI application behind `/calendars/`."""

    def __init__(
        self,
        services: Services,
        auth: Auth,
        rate_limits: OperationRateLimits,
        *,
        public_reads: bool,
    ) -> None:
        self._rate_limits = rate_limits
        self._services = services
        self._auth = auth
        self._public_reads = public_reads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # The path is not told to the log: who knows a private one can read the calendar.
        response = await handle_errors("a calendar", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        await charge_rate(
            self._auth, self._rate_limits, request, {OperationKind.READ: CALENDAR_READ_COST}
        )
        if request.method not in ("GET", "HEAD"):
            allow = {"Allow": "GET, HEAD"}
            raise HttpError(405, ErrorCode.BAD_USER_INPUT, "This takes GET and HEAD.", allow)
        path = request.path_params["path"]
        if private := _PRIVATE.fullmatch(path):
            person = await calendar_tokens.user_of(self._auth, private[1])
            if person is None:
                raise _not_found()
            events = await calendars.user_calendar(self._services, person.id)
            return _calendar_response(
                request, await render_calendar("Bookings", events), private=True
            )
        return await self._published_calendar(request, path)

    async def _published_calendar(self, request: Request, path: str) -> Response:
        campaign = _CAMPAIGN.fullmatch(path)
        if campaign is None and path != "published.ics":
            raise _not_found()
        reader = await self._authorize_viewer(request)
        name, campaign_id = "Published slots", None
        if campaign is not None:
            campaign_id = ids.parse_campaign_id(campaign[1])
            found = campaign_id and await campaigns.find(self._services, campaign_id, reader)
            if not found:
                raise _not_found()
            name = found.name
        events = await calendars.published_calendar(self._services, campaign_id)
        private = reader is not None or not self._public_reads
        return _calendar_response(request, await render_calendar(name, events), private=private)

    async def _authorize_viewer(self, request: Request) -> Caller | None:
        """Who reads; somebody, where the settings keep reading to those signed in."""
        caller = await optional_caller(self._auth, request)
        if caller is None and not self._public_reads:
            raise HttpError(
                401, ErrorCode.UNAUTHENTICATED, "Please sign in first.", BEARER_CHALLENGE
            )
        return caller


def _calendar_response(request: Request, body: bytes, *, private: bool) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    shared = "private" if private else "public"
    headers = {
        "ETag": etag,
        "Cache-Control": f"{shared}, max-age={int(MAX_AGE.total_seconds())}",
        "Vary": "Authorization",
    }
    known = request.headers.get("if-none-match", "")
    # Compared weakly, as RFC 9110, 13.1.2, says: proxies that compress mark what they change.
    if etag in (tag.strip().removeprefix("W/") for tag in known.split(",")) or known.strip() == "*":
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="text/calendar; charset=utf-8")


def _not_found() -> HttpError:
    return HttpError(404, "NOT_FOUND", "There is no such calendar.")
