"""User endpoints for organizers: import users from a file, and list invitations."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from slotlock.api.endpoints.callers import recheck_organizer
from slotlock.api.endpoints.csv_lines import choose_separator, csv_header, csv_line
from slotlock.api.endpoints.downloads import content_disposition
from slotlock.api.endpoints.organizer_endpoint import OrganizerEndpoint, query_params
from slotlock.api.endpoints.responses import error_response
from slotlock.auth.container import Auth
from slotlock.auth.invitations import PasswordInvitation, invite
from slotlock.auth.user_import import import_users
from slotlock.domain.reports.exports import CsvSeparator
from slotlock.domain.users.bans import invitable_roles
from slotlock.domain.users.groups import clean_groups, validate_group
from slotlock.domain.users.import_file import MAX_FILE_BYTES, InvalidUserFile
from slotlock.domain.users.import_plan import ImportBusy, ImportResult, ImportTooLarge
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.core.scalars import format_time
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.transport.http_requests import HttpError, check_declared_body, receive_body
from slotlock.infrastructure.request_deadline import untimed

CSV_MEDIA_TYPE = "text/csv"
INVITATION_COLUMNS = ("email", "name", "token", "expires_at")


def import_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> OrganizerEndpoint:
    """Create the endpoint of `POST /users/import`."""
    return OrganizerEndpoint(auth, rate_limits, _import_users)


def invitations_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> OrganizerEndpoint:
    """Create the endpoint of `POST /users/invitations`."""
    return OrganizerEndpoint(auth, rate_limits, _invite_users)


async def _import_users(auth: Auth, organizer: Caller, request: Request) -> Response:
    dry_run = query_params(request, "dryRun").get("dryRun", "false")
    if dry_run not in ("true", "false"):
        raise HttpError(400, "`dryRun` is true or false.")
    check_declared_body(request.headers, CSV_MEDIA_TYPE)
    with untimed():
        body = await receive_body(request.receive, MAX_FILE_BYTES)
    # The body can take minutes to arrive, in which the session may end or the role change.
    organizer = await recheck_organizer(auth, organizer)
    with untimed():  # a large file takes seconds, and an import has limits of its own
        outcome = await import_users(
            auth, body, dry_run=dry_run == "true", actor_id=organizer.user_id
        )
    match outcome:
        case ImportResult():
            counts = asdict(outcome)
            return JSONResponse({"dryRun": counts.pop("dry_run"), **counts})
        case InvalidUserFile():
            problems = [asdict(problem) for problem in outcome.problems]
            text = "The file has errors; nothing was imported."
            return error_response(
                422, "INVALID_FILE", text, problems=problems, problemCount=outcome.count
            )
        case ImportBusy():
            text = "Others are changing these users; nothing was imported. Please try again."
            response = error_response(409, "IMPORT_BUSY", text, retryAfterMs=outcome.retry_after_ms)
            response.headers["Retry-After"] = str(outcome.retry_after_ms // 1000)
            return response
        case ImportTooLarge():
            text = "The import is too large; nothing was imported. Split the file."
            return error_response(413, ErrorCode.LIMIT_EXCEEDED, text)
        case _:
            assert_never(outcome)


async def _invite_users(auth: Auth, organizer: Caller, request: Request) -> Response:
    params = query_params(request, "group", "separator")
    separator = choose_separator(params.get("separator"), request.headers.get("accept-language"))
    group = params.get("group")
    if group is not None:
        if problem := validate_group(group):
            raise HttpError(400, f"`group`: {problem}")
        (group,) = clean_groups([group])
    invitations = invite(auth, group, invitable_roles(organizer), organizer)
    lines = invitation_csv_lines(invitations, separator)
    # An unavailable MongoDB fails the first invitation, while the status can still be 503.
    first_lines = [await anext(lines), await anext(lines, "")]
    file_name = f"invitations-{auth.now():%Y-%m-%d}.csv"
    return StreamingResponse(
        _prepend(first_lines, lines),
        media_type=CSV_MEDIA_TYPE,
        headers={"Content-Disposition": content_disposition(group or "", file_name)},
    )


async def _prepend(first_lines: Sequence[str], lines: AsyncIterator[str]) -> AsyncIterator[str]:
    for line in first_lines:
        yield line
    async for line in lines:
        yield line


async def invitation_csv_lines(
    invitations: AsyncIterator[PasswordInvitation], separator: CsvSeparator
) -> AsyncIterator[str]:
    """Yield a header and a CSV line for each invitation; formulas are escaped."""
    yield csv_header(INVITATION_COLUMNS, separator)
    async for invitation in invitations:
        expires_at = format_time(invitation.expires_at)
        cells = (invitation.email, invitation.name, invitation.token, expires_at)
        yield csv_line(cells, separator)
