"""User endpoints for organizers: import users from a file, and list invitations."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from slotlock.api.endpoints.callers import recheck_organizer
from slotlock.api.endpoints.csv_files import INVITATION_VIEW, invitation_csv_lines
from slotlock.api.endpoints.downloads import choose_separator, content_disposition
from slotlock.api.endpoints.endpoint import OrganizerEndpoint, query_params
from slotlock.api.endpoints.responses import error_response
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.auth.invitations import NO_MAIL, invite
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.shared.tables.table import MAX_FILE_BYTES
from slotlock.domain.user_files.choices import INVALID_CHOICES, parse_choices
from slotlock.domain.user_files.columns import ADDRESSES_OF, GUARDIANS
from slotlock.domain.user_files.plan import (
    ImportBusy,
    ImportPreview,
    ImportResult,
    ImportTooLarge,
    SelfRegisteredAccount,
)
from slotlock.domain.users.account_admin_rules import manageable_roles
from slotlock.domain.users.groups import parse_group_list
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import ErrorCode
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.times import format_time
from slotlock.graphql.transport.http_messages import HttpError, check_declared_body, receive_body
from slotlock.infrastructure.request_deadline import untimed

CSV_MEDIA_TYPE = "text/csv"
MAX_WARNING_LINES = 10
# What browsers call a CSV file: Windows with Excel, others, Android, and none without a program for
# it. The content decides.
OTHER_CSV_MEDIA_TYPES = (
    "application/vnd.ms-excel",
    "application/csv",
    "text/comma-separated-values",
    "text/tab-separated-values",
    "text/plain",
    "application/octet-stream",
    "",
)


def import_endpoint(auth: Auth, rate_limits: OperationRateLimits) -> OrganizerEndpoint:
    """Create the endpoint of `POST /users/import`."""
    return OrganizerEndpoint(auth, rate_limits, _import_users)


def invitations_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, board_url: str | None
) -> OrganizerEndpoint:
    """Create the endpoint of `POST /users/invitations`, with links to the board, if any."""
    page = board_url and board_url + INVITATION_VIEW
    return OrganizerEndpoint(auth, rate_limits, partial(_invite_users, page))


async def _import_users(auth: Auth, organizer: Caller, request: Request) -> Response:
    params = query_params(request, "dryRun", "claim", "vouch", "addressesOf")
    dry_run = params.get("dryRun", "false")
    if dry_run not in ("true", "false"):
        raise HttpError(400, "`dryRun` is true or false.")
    choices = parse_choices(params.get("claim"), params.get("vouch"))
    if choices is None:
        raise HttpError(400, INVALID_CHOICES)
    addresses_of = params.get("addressesOf", ADDRESSES_OF[0])
    if addresses_of not in ADDRESSES_OF:
        raise HttpError(400, f"`addressesOf` is {' or '.join(ADDRESSES_OF)}.")
    check_declared_body(request.headers, CSV_MEDIA_TYPE, *OTHER_CSV_MEDIA_TYPES)
    with untimed():
        body = await receive_body(request.receive, MAX_FILE_BYTES)
    # The body can take minutes to arrive, in which the session may end or the role change.
    organizer = await recheck_organizer(auth, organizer)
    with untimed():  # a large file takes seconds, and an import has limits of its own
        outcome = await import_users(
            auth,
            body,
            dry_run=dry_run == "true",
            choices=choices,
            caller=organizer,
            addresses_of_guardians=addresses_of == GUARDIANS,
        )
    match outcome:
        case ImportResult():
            return JSONResponse(import_report(outcome))
        case InvalidFile():
            return invalid_file_response(outcome)
        case ImportBusy():
            text = "Time ran out, or others change these users; nothing was imported. Try again."
            response = error_response(409, "IMPORT_BUSY", text, retryAfterMs=outcome.retry_after_ms)
            response.headers["Retry-After"] = str(outcome.retry_after_ms // 1000)
            return response
        case ImportTooLarge():
            text = "The import is too large; nothing was imported. Split the file."
            return error_response(413, ErrorCode.LIMIT_EXCEEDED, text)
        case _:
            assert_never(outcome)


def invalid_file_response(invalid: InvalidFile) -> Response:
    """Return the response to a file with problems."""
    problems = [{"line": each.lines[0], **asdict(each)} for each in invalid.problems]
    text = "The file has errors; nothing was imported."
    return error_response(422, "INVALID_FILE", text, problems=problems, problemCount=invalid.count)


def registered_report(accounts: Sequence[SelfRegisteredAccount]) -> list[dict[str, object]]:
    """Return the JSON of accounts that their users registered, and that did not change."""
    return [
        {
            "line": account.line,
            "userId": user_global_id(account.user.id),
            "email": account.user.login_name,
            "name": account.user.name,
            "registeredAt": format_time(account.user.created_at),
        }
        for account in accounts
    ]


def import_report(result: ImportResult) -> dict[str, object]:
    """Return the JSON of an import, also for the command line."""
    return {
        "dryRun": result.dry_run,
        "created": result.created,
        "updated": result.updated,
        "unchanged": result.unchanged,
        "claimed": result.claimed,
        "vouchedFor": result.vouched_for,
        "linksAdded": result.links_added,
        "linksRemoved": result.links_removed,
        "leadersChanged": result.leaders_changed,
        "withoutLeader": list(result.without_leader),
        "selfRegistered": registered_report(result.self_registered),
        "ignoredColumns": list(result.ignored_columns),
        "leavers": [
            {
                "userId": user_global_id(user.id),
                "email": None if user.has_made_login_name else user.login_name,
                "name": user.name,
                "groups": list(user.groups),
            }
            for user in result.leavers
        ],
        "similarGroups": [list(groups) for groups in result.similar_groups],
        **({"preview": _to_preview(result.preview)} if result.dry_run else {}),
    }


def _to_preview(preview: ImportPreview) -> dict[str, object]:
    return {
        "first": [
            {
                "email": row.login_name or None,
                "name": row.name,
                "groups": list(row.groups or ()),
                "guardians": [each.login_name for each in row.guardians or ()],
            }
            for row in preview.first
        ],
        "groups": [{"name": name, "count": count} for name, count in preview.groups],
        "warnings": [
            {"code": warning, "lines": list(lines[:MAX_WARNING_LINES]), "count": len(lines)}
            for warning, lines in preview.odd_lines
        ],
    }


async def _invite_users(
    page: str | None, auth: Auth, organizer: Caller, request: Request
) -> Response:
    params = query_params(request, "group", "separator", "mail")
    by_mail = params.get("mail", "false")
    if by_mail not in ("true", "false"):
        raise HttpError(400, "`mail` is true or false.")
    if by_mail == "true" and not auth.sends_mail:
        raise HttpError(400, NO_MAIL)
    separator = choose_separator(params.get("separator"), request.headers.get("accept-language"))
    group = params.get("group")
    if group is not None:
        parsed = parse_group_list(group)
        if isinstance(parsed, Problem):
            raise HttpError(400, f"`group`: {parsed}")
        group = parsed
    roles = manageable_roles(organizer)
    invitations = invite(auth, group, roles, organizer, by_mail=by_mail == "true")
    lines = invitation_csv_lines(invitations, separator, page)
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
