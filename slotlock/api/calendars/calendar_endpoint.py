"""`/calendars/...`: a user's private calendar and the published ones."""

import hashlib
import re
from collections.abc import Sequence
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from slotlock.api.endpoints.callers import optional_caller, require_caller
from slotlock.api.endpoints.downloads import content_disposition, has_etag
from slotlock.api.endpoints.endpoint import Endpoint, any_token
from slotlock.auth import calendar_tokens
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.domain.reports.calendar_events import CalendarEvent
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.graphql.check_in_codes import calendar_purpose, parse_booking_code
from slotlock.graphql.core import ids
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.request_deadline import untimed
from slotlock.services import resources
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import calendars

MAX_AGE = timedelta(minutes=5)
# A calendar of some hundred events costs as much as this many reads.
CALENDAR_READ_COST = 10
_PRIVATE = re.compile(r"private/([^/]{1,100})\.ics")
_BOOKING = re.compile(r"private/bookings/(?:([0-9a-f]{24})/)?([^/]{1,100})\.ics")
_ORGANIZED = re.compile(r"private/([^/]{1,100})/organized\.ics")
_PRIVATE_RESOURCE = re.compile(r"private/([^/]{1,100})/resources/([^/]{1,700})\.ics")
_RESOURCE = re.compile(r"resources/([^/]{1,700})\.ics")
_CAMPAIGN = re.compile(r"campaigns/([^/]{1,100})\.ics")


def calendars_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, shown: "Calendars"
) -> Endpoint[VerifiedToken]:
    """Create the endpoint of every path under `/calendars/`: that of a private one is a secret."""
    costs, methods = {OperationKind.READ: CALENDAR_READ_COST}, ("GET", "HEAD")
    return Endpoint(
        auth, rate_limits, any_token, shown.respond, methods, costs=costs, subject="a calendar"
    )


class Calendars:
    """Calendars of users, of resources, and of what is published."""

    def __init__(
        self,
        services: Services,
        auth: Auth,
        board_url: str,
        *,
        public_reads: bool,
        public_resources: bool,
    ) -> None:
        self._services = services
        self._auth = auth
        self._board_url = board_url
        self._public_reads = public_reads
        self._public_resources = public_resources

    async def respond(self, _auth: Auth, token: VerifiedToken, request: Request) -> Response:
        """Send the calendar that the path names."""
        path = strip_blanks(request.path_params["path"])
        if private := _PRIVATE.fullmatch(path):
            return await self._private_calendar(request, private[1])
        if booking := _BOOKING.fullmatch(path):
            return await self._booking_calendar(request, *booking.groups())
        if organized := _ORGANIZED.fullmatch(path):
            return await self._organizer_calendar(request, organized[1])
        if private_resource := _PRIVATE_RESOURCE.fullmatch(path):
            user = await self._user_of(private_resource[1])
            return await self._resource_calendar(request, private_resource[2], reader=user)
        if resource_path := _RESOURCE.fullmatch(path):
            viewer = await self._viewer(token)
            if not (self._public_resources or (viewer is not None and viewer.is_organizer)):
                raise _not_found()
            is_private = viewer is not None or not self._public_reads
            return await self._resource_calendar(request, resource_path[1], private=is_private)
        return await self._published_calendar(request, path, token)

    async def _private_calendar(self, request: Request, calendar_token: str) -> Response:
        user = await self._user_of(calendar_token)
        events = await calendars.user_calendar(self._services, user, self._board_url)
        return await _calendar_response(request, "Bookings", events, private=True)

    async def _booking_calendar(
        self, request: Request, guardian: str | None, code: str
    ) -> Response:
        ref = parse_booking_code(self._auth.tokens, code, calendar_purpose(guardian))
        if ref is None:
            raise _not_found()
        guardian_id = UserId(guardian) if guardian else None
        events = await calendars.booking_calendar(
            self._services, *ref, self._board_url, guardian_id
        )
        if events is None:
            raise _not_found()
        name = events[0].title if events else "Booking"
        return await _calendar_response(request, name, events, private=True)

    async def _organizer_calendar(self, request: Request, calendar_token: str) -> Response:
        organizer = await self._user_of(calendar_token)
        if not organizer.role.is_organizer:
            raise _not_found()
        events = await calendars.organizer_calendar(self._services, organizer.id, self._board_url)
        return await _calendar_response(request, "My slots", events, private=True)

    async def _user_of(self, calendar_token: str) -> User:
        user = await calendar_tokens.user_of(self._auth, calendar_token)
        if user is None:
            raise _not_found()
        return user

    async def _resource_calendar(
        self,
        request: Request,
        resource_id: str,
        *,
        private: bool = True,
        reader: User | None = None,
    ) -> Response:
        """Send the calendar of a resource; a private one to an organizer and to the leader only."""
        name = ids.parse_resource_id(resource_id)
        resource = await resources.find(self._services, name) if name else None
        if resource is None:
            raise _not_found()
        if reader and not (reader.role.is_organizer or reader.id == resource.leader):
            raise _not_found()
        events = await calendars.resource_calendar(self._services, resource.name, self._board_url)
        return await _calendar_response(request, resource.name, events, private=private)

    async def _published_calendar(
        self, request: Request, path: str, token: VerifiedToken
    ) -> Response:
        campaign_path = _CAMPAIGN.fullmatch(path)
        if campaign_path is None and path != "published.ics":
            raise _not_found()
        viewer = await self._viewer(token)
        name, campaign_id = "Published slots", None
        if campaign_path is not None:
            campaign_id = ids.parse_campaign_id(campaign_path[1])
            campaign = campaign_id and await campaigns.find(self._services, campaign_id, viewer)
            if not campaign:
                raise _not_found()
            name = campaign.name
        events = await calendars.published_calendar(self._services, campaign_id, self._board_url)
        private = viewer is not None or not self._public_reads
        return await _calendar_response(request, name, events, private=private)

    async def _viewer(self, token: VerifiedToken) -> Caller | None:
        """Return the viewer; only public reads allow an anonymous one."""
        if self._public_reads:
            return await optional_caller(self._auth, token)
        return await require_caller(self._auth, token)


async def _calendar_response(
    request: Request, name: str, events: Sequence[CalendarEvent], *, private: bool
) -> Response:
    with untimed():
        # The first calendar needs more time for the import, instead of every start.
        from slotlock.infrastructure.ical import render_calendar

        body = await render_calendar(name, events)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    visibility = "private" if private else "public"
    headers = {
        "ETag": etag,
        "Cache-Control": f"{visibility}, max-age={int(MAX_AGE.total_seconds())}",
        "Vary": "Authorization",
    }
    if has_etag(request, etag):
        return Response(status_code=304, headers=headers)
    # Without a name, a browser takes the last part of the path, which may be a secret.
    headers["Content-Disposition"] = content_disposition(name, "calendar.ics", inline=True)
    return Response(body, headers=headers, media_type="text/calendar; charset=utf-8")


def _not_found() -> HttpError:
    return HttpError(404, "There is no such calendar.")
