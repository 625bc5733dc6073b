"""`/sign-on/{provider}/logout`: where a provider says that one of its sessions has ended."""

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from slotlock.api.endpoints.endpoint import Endpoint, any_token
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.auth.sign_on.back_channel import end_provider_session
from slotlock.auth.sign_on.id_tokens import MAX_TOKEN_LENGTH
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError

NOT_STORED = {"Cache-Control": "no-store"}


def back_channel_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> Endpoint[VerifiedToken]:
    """Create the endpoint of the address that providers know."""
    costs = {OperationKind.SIGN_OUT: 1}
    return Endpoint(auth, rate_limits, any_token, _respond, ("POST",), costs=costs)


async def _respond(auth: Auth, _token: VerifiedToken, request: Request) -> Response:
    provider = request.path_params["provider"]
    connection = auth.sign_on.find(provider) if auth.sign_on else None
    if connection is None:
        raise HttpError(404, "There is no such provider.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_TOKEN_LENGTH:
            raise HttpError(413, "The token is too long.")
    (token, *_) = parse_qs(body.decode(errors="replace")).get("logout_token", [""])
    if await end_provider_session(auth, connection, token):
        return Response(headers=NOT_STORED)
    # The text is that of OpenID Connect Back-Channel Logout 1.0, 2.8.
    raise HttpError(400, "invalid_request", NOT_STORED)
