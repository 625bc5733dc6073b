"""`/sign-on/{provider}/logout`: where a provider says that one of its sessions has ended."""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import verify_and_charge
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time, to_response
from slotlock.auth.container import Auth
from slotlock.auth.sign_on.back_channel import end_provider_session
from slotlock.auth.sign_on.id_tokens import MAX_TOKEN_LENGTH
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError

NOT_STORED = {"Cache-Control": "no-store"}


class BackChannelEndpoint:
    """The ASGI application of the address that providers know."""

    def __init__(self, auth: Auth, rate_limits: OperationRateLimits) -> None:
        self._auth = auth
        self._rate_limits = rate_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        response = await respond_in_time("signing out", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        charge = {OperationKind.SIGN_OUT: 1}
        await verify_and_charge(self._auth, self._rate_limits, request, charge)
        if request.method != "POST":
            raise method_not_allowed("POST")
        sign_on = self._auth.sign_on
        connection = sign_on.find(request.path_params["provider"]) if sign_on else None
        if connection is None:
            raise HttpError(404, "There is no such provider.")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_TOKEN_LENGTH:
                raise HttpError(413, "The token is too long.")
        (token, *_) = parse_qs(body.decode(errors="replace")).get("logout_token", [""])
        if await end_provider_session(self._auth, connection, token):
            return Response(headers=NOT_STORED)
        # The text is that of OpenID Connect Back-Channel Logout 1.0, 2.8.
        return to_response(HttpError(400, "invalid_request", NOT_STORED))
