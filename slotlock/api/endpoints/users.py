"""People over plain HTTP: files of them come in, and their invitations go out."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from slotlock.api.endpoints.csv_lines import csv_line
from slotlock.api.endpoints.organizer_endpoint import (
    HttpError,
    OrganizerEndpoint,
    error_response,
    query_params,
    read_body,
    require_organizer,
)
from slotlock.auth.container import Auth
from slotlock.auth.invitations import PasswordInvitation, invite
from slotlock.auth.user_import import import_users
from slotlock.domain.users.bans import invitable_roles
from slotlock.domain.users.groups import clean_groups, validate_group
from slotlock.domain.users.import_file import MAX_FILE_BYTES, InvalidUserFile
from slotlock.domain.users.import_plan import ImportBusy, ImportResult, ImportTooLarge
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.core.scalars import format_time
from slotlock.graphql.limits.rates import OperationRateLimits

CSV_MEDIA_TYPE = "text/csv"
INVITATION_COLUMNS = ("email", "name", "token", "expires_at")


def import_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> OrganizerEndpoint:
    """`POST /users/import`: a file of people."""
    return OrganizerEndpoint(auth, rate_limits, _import_users)


def invitations_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> OrganizerEndpoint:
    """`POST /users/invitations`: new invitations for all who never set a password."""
    return OrganizerEndpoint(auth, rate_limits, _invite_users)


async def _import_users(auth: Auth, organizer: Caller, request: Request) -> Response:
    dry_run = query_params(request, "dryRun").get("dryRun", "false")
    if dry_run not in ("true", "false"):
        raise HttpError(400, ErrorCode.BAD_USER_INPUT, "`dryRun` is true or false.")
    body = await read_body(request, CSV_MEDIA_TYPE, MAX_FILE_BYTES)
    # It can be minutes on its way, in which a session ends or a role is taken away.
    organizer = await require_organizer(auth, request)
    outcome = await import_users(auth, body, dry_run=dry_run == "true", actor_id=organizer.user_id)
    match outcome:
        case ImportResult():
            counts = asdict(outcome)
            return JSONResponse({"dryRun": counts.pop("dry_run"), **counts})
        case InvalidUserFile():
            problems = [asdict(problem) for problem in outcome.problems]
            text = "The file cannot be taken; nothing was imported."
            return error_response(
                422, "INVALID_FILE", text, problems=problems, problemCount=outcome.count
            )
        case ImportBusy():
            text = "Others are changing these people; nothing was imported. Please try again."
            busy = error_response(409, "IMPORT_BUSY", text, retryAfterMs=outcome.retry_after_ms)
            busy.headers["Retry-After"] = str(outcome.retry_after_ms // 1000)
            return busy
        case ImportTooLarge():
            text = "This is too much for one import; nothing was imported. Send it in parts."
            return error_response(413, ErrorCode.LIMIT_EXCEEDED, text)
        case _:
            assert_never(outcome)


async def _invite_users(auth: Auth, organizer: Caller, request: Request) -> Response:
    given = query_params(request, "group").get("group")
    group = None
    if given is not None:
        if problem := validate_group(given):
            raise HttpError(400, ErrorCode.BAD_USER_INPUT, f"`group`: {problem}")
        (group,) = clean_groups([given])
    lines = invitation_csv_lines(invite(auth, group, invitable_roles(organizer), organizer))
    # The first are made before the status is sent, so that a MongoDB that is away is told by it.
    first = [await anext(lines), await anext(lines, "")]
    return StreamingResponse(
        _prepend(first, lines),
        media_type=CSV_MEDIA_TYPE,
        headers={"Content-Disposition": 'attachment; filename="invitations.csv"'},
    )


async def _prepend(first: Sequence[str], lines: AsyncIterator[str]) -> AsyncIterator[str]:
    for line in first:
        yield line
    async for line in lines:
        yield line


async def invitation_csv_lines(
    invitations: AsyncIterator[PasswordInvitation],
) -> AsyncIterator[str]:
    """Invitations as lines of CSV, with a header. Nothing in them is a formula."""
    yield csv_line(INVITATION_COLUMNS)
    async for each in invitations:
        yield csv_line((each.email, each.name, each.token, format_time(each.expires_at)))
