"""`GET /exports/slots/{id}.csv`, `.xlsx`, and of campaigns: rosters as files, for organisers."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from typing import Any, BinaryIO, TypeVar, assert_never

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.organizer_endpoint import (
    HttpError,
    OrganizerEndpoint,
    require_organizer,
)
from slotlock.api.exports.builder import ExportBuilder, ExportBusy, ExportFailed, ExportFile
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import INTERNAL_MESSAGE, RETRY_AFTER_HEADERS, ErrorCode
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.slots import queries

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
CHUNK_BYTES = 65_536
_PATH = re.compile(r"(slot|campaign)s/([^/]{1,100})\.(csv|xlsx)")

Result = TypeVar("Result")


def exports_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, services: Services, builder: ExportBuilder
) -> OrganizerEndpoint:
    """The endpoint of everything under `/exports/`."""

    async def respond(auth: Auth, organizer: Caller, request: Request) -> Response:
        kind, gid, form = await _find_target(services, organizer, request.path_params["path"])
        id_ = gid.removeprefix(f"{kind}_")
        outcome = await _cancel_on_disconnect(request, builder.build(kind, id_, form))
        match outcome:
            case ExportFile():
                await _recheck_organizer(auth, request, outcome)
                return _FileResponse(outcome, f"{gid}.{form}", MEDIA_TYPES[form])
            case ExportBusy():
                text = "Other files are being written. Please try again."
                again = {"Retry-After": str(outcome.retry_after_s)}
                raise HttpError(503, "EXPORT_BUSY", text, again)
            case ExportFailed():
                raise HttpError(503, ErrorCode.INTERNAL, INTERNAL_MESSAGE, RETRY_AFTER_HEADERS)
            case _:
                assert_never(outcome)

    return OrganizerEndpoint(auth, rate_limits, respond, method="GET")


async def _find_target(services: Services, organizer: Caller, path: str) -> tuple[str, str, str]:
    """What a path names: a slot or a campaign that there is, and a form. Errors: HttpRefusal."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise HttpError(404, "NOT_FOUND", "There is nothing here.")
    kind, gid, form = match.groups()
    slot_id, campaign_id = ids.parse_slot_id(gid), ids.parse_campaign_id(gid)
    if kind == "slot" and slot_id and await queries.find_slots(services, [slot_id], organizer):
        return kind, gid, form
    if (
        kind == "campaign"
        and campaign_id
        and await campaigns.find(services, campaign_id, organizer)
    ):
        return kind, gid, form
    raise HttpError(404, "NOT_FOUND", f"There is no such {kind}.")


async def _recheck_organizer(auth: Auth, request: Request, export: ExportFile) -> None:
    """Look again at who asks, since a file can take minutes. Errors: HttpRefusal."""
    try:
        await require_organizer(auth, request)
    except BaseException:
        export.file.close()
        raise


async def _cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """What comes of the work, which ends when its client leaves. Errors: ClientDisconnect."""
    working, leaving = (
        asyncio.ensure_future(work),
        asyncio.ensure_future(_wait_for_disconnect(request)),
    )
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _FileResponse(StreamingResponse):
    """A file that is closed once it was sent, or cannot be sent any more."""

    def __init__(self, export: ExportFile, name: str, media_type: str) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(export.size),
        }
        super().__init__(_chunks(export.file), media_type=media_type, headers=headers)
        self._file = export.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        except ClientDisconnect:
            return  # nobody is left to be told anything
        finally:
            self._file.close()


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
