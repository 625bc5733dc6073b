"""People over plain HTTP: files of them come in, and their invitations go out."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import assert_never

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from slotlock.api.csv_lines import csv_line
from slotlock.api.organisers import (
    HttpRefusal,
    OrganisersEndpoint,
    body_of,
    organiser_of,
    parameters,
    refused,
)
from slotlock.auth.auth import Auth
from slotlock.auth.importing import import_people
from slotlock.auth.inviting import Invitation, invite
from slotlock.domain.banning import invited_roles
from slotlock.domain.groups import group_problem, normalised
from slotlock.domain.people import Caller
from slotlock.domain.people_import import MAX_BYTES, BadFile
from slotlock.domain.people_plan import ImportBusy, Imported, TooMuchAtOnce
from slotlock.graphql.errors import Code
from slotlock.graphql.rates import Rates
from slotlock.graphql.scalars import format_time

CSV = "text/csv"
HEADER = ("email", "name", "token", "expires_at")


def import_endpoint(auth: Auth, rates: Rates) -> OrganisersEndpoint:
    """`POST /people/import`: a file of people."""
    return OrganisersEndpoint(auth, rates, _import)


def invitations_endpoint(auth: Auth, rates: Rates) -> OrganisersEndpoint:
    """`POST /people/invitations`: new invitations for all who never set a password."""
    return OrganisersEndpoint(auth, rates, _invite)


async def _import(auth: Auth, organiser: Caller, request: Request) -> Response:
    dry_run = parameters(request, "dryRun").get("dryRun", "false")
    if dry_run not in ("true", "false"):
        raise HttpRefusal(400, Code.BAD_USER_INPUT, "`dryRun` is true or false.")
    body = await body_of(request, CSV, MAX_BYTES)
    # It can be minutes on its way, in which a session ends or a role is taken away.
    organiser = await organiser_of(auth, request)
    outcome = await import_people(auth, body, dry_run=dry_run == "true", by=organiser.user_id)
    match outcome:
        case Imported():
            counts = asdict(outcome)
            return JSONResponse({"dryRun": counts.pop("dry_run"), **counts})
        case BadFile():
            problems = [asdict(problem) for problem in outcome.problems]
            text = "The file cannot be taken; nothing was imported."
            return refused(422, "INVALID_FILE", text, problems=problems, problemCount=outcome.count)
        case ImportBusy():
            text = "Others are changing these people; nothing was imported. Please try again."
            busy = refused(409, "IMPORT_BUSY", text, retryAfterMs=outcome.retry_after_ms)
            busy.headers["Retry-After"] = str(outcome.retry_after_ms // 1000)
            return busy
        case TooMuchAtOnce():
            text = "This is too much for one import; nothing was imported. Send it in parts."
            return refused(413, Code.LIMIT_EXCEEDED, text)
        case _:
            assert_never(outcome)


async def _invite(auth: Auth, organiser: Caller, request: Request) -> Response:
    given = parameters(request, "group").get("group")
    group = None
    if given is not None:
        if problem := group_problem(given):
            raise HttpRefusal(400, Code.BAD_USER_INPUT, f"`group`: {problem}")
        (group,) = normalised([given])
    lines = invitation_lines(invite(auth, group, invited_roles(organiser), organiser))
    # The first are made before the status is sent, so that a MongoDB that is away is told by it.
    first = [await anext(lines), await anext(lines, "")]
    return StreamingResponse(
        _after(first, lines),
        media_type=CSV,
        headers={"Content-Disposition": 'attachment; filename="invitations.csv"'},
    )


async def _after(first: Sequence[str], lines: AsyncIterator[str]) -> AsyncIterator[str]:
    for line in first:
        yield line
    async for line in lines:
        yield line


async def invitation_lines(invitations: AsyncIterator[Invitation]) -> AsyncIterator[str]:
    """Invitations as lines of CSV, with a header. Nothing in them is a formula."""
    yield csv_line(HEADER)
    async for each in invitations:
        yield csv_line((each.email, each.name, each.token, format_time(each.expires_at)))
