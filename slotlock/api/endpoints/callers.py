"""Authentication and rate limits of the HTTP endpoints outside GraphQL."""

from collections.abc import Mapping

from starlette.requests import Request

from slotlock.auth.authentication import (
    VerifiedToken,
    load_caller,
    recheck_caller,
    user_to_charge,
)
from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.request_deadline import current_request

BEARER_CHALLENGE = {"WWW-Authenticate": "Bearer"}


async def charge_token(
    auth: Auth,
    rate_limits: OperationRateLimits,
    request: Request,
    token: VerifiedToken,
    costs: Mapping[OperationKind, int],
) -> None:
    """Charge a request to the user of its token and to its address.

    Raises:
        RateLimitedError: the user or the address has reached a limit.
    """
    user_id, address = user_to_charge(auth, token), client_address(request.scope)
    await rate_limits.wait(rate_limits.charge(costs, user_id, address))


async def optional_caller(auth: Auth, token: VerifiedToken) -> Caller | None:
    """Return the caller of a token, or None for an anonymous request.

    Raises:
        HttpError: 401 if the token is invalid or its session has ended.
    """
    try:
        caller = await load_caller(auth, token)
    except BadTokenError as error:
        raise _unauthenticated(str(error)) from None
    name_caller(caller)
    return caller


def name_caller(caller: Caller | None) -> None:
    """Name the caller in the later log lines of the request."""
    request = current_request()
    if request is not None:
        request.identity = caller


async def require_caller(auth: Auth, token: VerifiedToken) -> Caller:
    """Return the caller of a token.

    Raises:
        HttpError: 401 for an anonymous request or an invalid token.
    """
    caller = await optional_caller(auth, token)
    if caller is None:
        raise _unauthenticated("Please sign in first.")
    return caller


async def require_organizer(auth: Auth, token: VerifiedToken) -> Caller:
    """Return the organizer or admin of a token.

    Raises:
        HttpError: 401 without a valid token, 403 for a member.
    """
    return _organizer(await require_caller(auth, token))


async def recheck_organizer(auth: Auth, organizer: Caller) -> Caller:
    """Return the organizer with their current role, after work that took long.

    Raises:
        HttpError: 401 if the session has ended meanwhile, 403 if the role was taken away.
    """
    return _organizer(await recheck(auth, organizer))


async def recheck(auth: Auth, caller: Caller) -> Caller:
    """Return the caller with their current role. Raises HttpError: 401 if the session has ended."""
    try:
        return await recheck_caller(auth, caller)
    except BadTokenError as error:
        raise _unauthenticated(str(error)) from None


def _organizer(caller: Caller) -> Caller:
    if not caller.is_organizer:
        raise HttpError(403, "Only organizers may do this.")
    return caller


def _unauthenticated(message: str) -> HttpError:
    return HttpError(401, message, BEARER_CHALLENGE)
