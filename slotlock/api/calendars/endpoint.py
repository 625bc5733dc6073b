"""`/calendars/...`: a person's own by its private address, and what is published."""

import hashlib
import re
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotlock.api.calendars.ical import written
from slotlock.api.organisers import CHALLENGE, HttpRefusal, answered, caller_of, counted
from slotlock.auth import calendar_addresses
from slotlock.auth.auth import Auth
from slotlock.desk import calendars, campaigns
from slotlock.desk.desk import Desk
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.errors import Code
from slotlock.graphql.kinds import Kind
from slotlock.graphql.rates import Rates

MAX_AGE = timedelta(minutes=5)
# As many reads: what one costs that has some hundred events.
WEIGHT = 10
_PRIVATE = re.compile(r"private/([^/]{1,100})\.ics")
_CAMPAIGN = re.compile(r"campaigns/([^/]{1,100})\.ics")


class CalendarsEndpoint:
    """The ASGI application behind `/calendars/`."""

    def __init__(self, desk: Desk, auth: Auth, rates: Rates, *, public_reads: bool) -> None:
        self._rates = rates
        self._desk = desk
        self._auth = auth
        self._public_reads = public_reads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # The path is not told to the log: who knows a private one can read the calendar.
        response = await answered("a calendar", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        await counted(self._auth, self._rates, request, {Kind.READ: WEIGHT})
        if request.method not in ("GET", "HEAD"):
            allow = {"Allow": "GET, HEAD"}
            raise HttpRefusal(405, Code.BAD_USER_INPUT, "This takes GET and HEAD.", allow)
        path = request.path_params["path"]
        if private := _PRIVATE.fullmatch(path):
            person = await calendar_addresses.whose(self._auth, private[1])
            if person is None:
                raise _nothing()
            events = await calendars.of_person(self._desk, person.id)
            return _response(request, await written("Bookings", events), private=True)
        return await self._published(request, path)

    async def _published(self, request: Request, path: str) -> Response:
        campaign = _CAMPAIGN.fullmatch(path)
        if campaign is None and path != "published.ics":
            raise _nothing()
        reader = await self._reader(request)
        name, campaign_id = "Published slots", None
        if campaign is not None:
            campaign_id = ids.campaign_id_of(campaign[1])
            found = campaign_id and await campaigns.find(self._desk, campaign_id, reader)
            if not found:
                raise _nothing()
            name = found.name
        events = await calendars.published(self._desk, campaign_id)
        private = reader is not None or not self._public_reads
        return _response(request, await written(name, events), private=private)

    async def _reader(self, request: Request) -> Caller | None:
        """Who reads; somebody, where the settings keep reading to those signed in."""
        caller = await caller_of(self._auth, request)
        if caller is None and not self._public_reads:
            raise HttpRefusal(401, Code.UNAUTHENTICATED, "Please sign in first.", CHALLENGE)
        return caller


def _response(request: Request, body: bytes, *, private: bool) -> Response:
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


def _nothing() -> HttpRefusal:
    return HttpRefusal(404, "NOT_FOUND", "There is no such calendar.")
