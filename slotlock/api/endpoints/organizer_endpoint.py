"""An HTTP endpoint that only organizers may use, or only who passes another check."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import require_organizer, verify_and_charge
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError

MAX_LOGGED_PATH_CHARS = 100

Handler = Callable[[Auth, Caller, Request], Awaitable[Response]]
Check = Callable[[Auth, VerifiedToken], Awaitable[Caller]]


class OrganizerEndpoint:
    """The ASGI application of one path, for organizers and one method.

    With another check of the token, it is for the callers that pass it.
    """

    def __init__(
        self,
        auth: Auth,
        rate_limits: OperationRateLimits,
        handler: Handler,
        method: str = "POST",
        kind: OperationKind = OperationKind.FILE,
        check: Check = require_organizer,
    ) -> None:
        self._auth = auth
        self._rate_limits = rate_limits
        self._handler = handler
        self._method = method
        self._cost = {kind: 1}
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        # repr() escapes line breaks, with which a client could forge lines of the log.
        path = repr(scope["path"][:MAX_LOGGED_PATH_CHARS])
        response = await respond_in_time(path, self._handle_request(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _handle_request(self, request: Request) -> Response:
        token = await verify_and_charge(self._auth, self._rate_limits, request, self._cost)
        if request.method != self._method:
            raise method_not_allowed(self._method)
        caller = await self._check(self._auth, token)
        return await self._handler(self._auth, caller, request)


def query_params(request: Request, *allowed: str) -> dict[str, str]:
    """Return the parameters of the query string.

    Raises:
        HttpError: 400 for an unknown or repeated parameter: a misspelled `dryRun` must not become
            an import.
    """
    parameters = request.query_params.multi_items()
    names = [name for name, _ in parameters]
    for name in names:
        if name not in allowed or names.count(name) > 1:
            text = f"The parameters are {', '.join(allowed)}, each at most once."
            raise HttpError(400, text)
    return dict(parameters)
