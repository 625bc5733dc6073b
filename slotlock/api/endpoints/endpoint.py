"""An HTTP endpoint outside GraphQL: what a request costs, its methods, and whom it is for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import charge_token, require_organizer
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time
from slotlock.auth.authentication import VerifiedToken, verify_authorization
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError

MAX_LOGGED_PATH_CHARS = 100
ONE_FILE = {OperationKind.FILE: 1}

Reader = TypeVar("Reader")
# Returns whom the token of a request is for, or raises an HttpError.
Check = Callable[[Auth, VerifiedToken], Awaitable[Reader]]
Handler = Callable[[Auth, Reader, Request], Awaitable[Response]]


async def any_token(_auth: Auth, token: VerifiedToken) -> VerifiedToken:
    """Let every request pass, whatever its token is."""
    return token


def bearer_token(auth: Auth, request: Request) -> VerifiedToken:
    """Verify the token of the `Authorization` header."""
    return verify_authorization(auth, request.headers.get("authorization"))


class Endpoint(Generic[Reader]):
    """The ASGI application of one path: it charges each request before anything else happens.

    The handler gets whom the check of the token returns. The log names the path of a request that
    fails, or `subject` in its place if the path is a secret.
    """

    def __init__(
        self,
        auth: Auth,
        rate_limits: OperationRateLimits,
        check: Check[Reader],
        handler: Handler[Reader],
        methods: Sequence[str],
        *,
        costs: Mapping[OperationKind, int] = ONE_FILE,
        subject: str | None = None,
        verify: Callable[[Auth, Request], VerifiedToken] = bearer_token,
    ) -> None:
        self._auth = auth
        self._rate_limits = rate_limits
        self._check = check
        self._handler = handler
        self._methods = methods
        self._costs = costs
        self._subject = subject
        self._verify = verify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        # repr() escapes line breaks, with which a client could forge lines of the log.
        subject = self._subject or repr(scope["path"][:MAX_LOGGED_PATH_CHARS])
        response = await respond_in_time(subject, self._handle_request(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _handle_request(self, request: Request) -> Response:
        token = self._verify(self._auth, request)
        await charge_token(self._auth, self._rate_limits, request, token, self._costs)
        if request.method not in self._methods:
            raise method_not_allowed(*self._methods)
        reader = await self._check(self._auth, token)
        return await self._handler(self._auth, reader, request)


class OrganizerEndpoint(Endpoint[Caller]):
    """The ASGI application of one path to which organizers post."""

    def __init__(
        self, auth: Auth, rate_limits: OperationRateLimits, handler: Handler[Caller]
    ) -> None:
        super().__init__(auth, rate_limits, require_organizer, handler, ("POST",))


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
