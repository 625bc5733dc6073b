"""`/exports/links/{token}`: an export by a signed link, which a browser can follow."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import charge_token, name_caller
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time
from slotlock.api.exports.endpoint import Exports
from slotlock.auth.container import Auth
from slotlock.auth.links import export_links
from slotlock.auth.tokens import EXPIRED_MESSAGE, BadTokenError, TokenClaims
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.transport.http_requests import HttpError

EXPIRED = "This link has expired. Please create a new one."
INVALID = "This link is not valid. Please create a new one."
SESSION_ENDED = "This link ended with the session that created it. Please create a new one."
NO_ORGANIZER = "Only organizers may download this file."


class ExportLinkEndpoint:
    """The ASGI application of the links to exports. Its refusals are text, for a browser."""

    def __init__(self, auth: Auth, rate_limits: OperationRateLimits, exports: Exports) -> None:
        self._auth = auth
        self._rate_limits = rate_limits
        self._exports = exports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        # The path is a secret, so the log does not name it.
        response = await respond_in_time("an export link", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        try:
            return await self._download(request)
        except HttpError as error:
            return PlainTextResponse(str(error), error.status, dict(error.headers))

    async def _download(self, request: Request) -> Response:
        token = export_links.verify(self._auth, request.path_params["token"])
        costs = {OperationKind.FILE: 1}
        await charge_token(self._auth, self._rate_limits, request, token, costs)
        if request.method not in ("GET", "HEAD"):  # the server sends no body to HEAD
            raise method_not_allowed("GET", "HEAD")
        if not isinstance(token, TokenClaims):
            expired = str(token) == EXPIRED_MESSAGE
            raise HttpError(410, EXPIRED) if expired else HttpError(403, INVALID)
        try:
            organizer = await export_links.load_downloader(self._auth, token)
        except BadTokenError:
            raise HttpError(403, SESSION_ENDED) from None
        name_caller(organizer)
        if not organizer.is_organizer:
            raise HttpError(403, NO_ORGANIZER)
        return await self._exports.download(self._auth, organizer, request, token.export or "")
