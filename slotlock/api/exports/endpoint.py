"""`GET /exports/slots/{id}.csv`, `.xlsx`, and of campaigns: rosters as files, for organisers."""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine
from typing import Any, BinaryIO, TypeVar, assert_never

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.api.exports.building import BuildingOthers, Built, Exports, NotBuilt
from slotlock.api.organisers import HttpRefusal, OrganisersEndpoint, organiser_of
from slotlock.auth.auth import Auth
from slotlock.desk import campaigns, reading
from slotlock.desk.desk import Desk
from slotlock.domain.people import Caller
from slotlock.graphql import ids
from slotlock.graphql.errors import SORRY, TRY_AGAIN, Code
from slotlock.graphql.rates import Rates

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
CHUNK = 65_536
_PATH = re.compile(r"(slot|campaign)s/([^/]{1,100})\.(csv|xlsx)")

Result = TypeVar("Result")


def exports_endpoint(auth: Auth, rates: Rates, desk: Desk, exports: Exports) -> OrganisersEndpoint:
    """The endpoint of everything under `/exports/`."""

    async def respond(auth: Auth, organiser: Caller, request: Request) -> Response:
        kind, gid, form = await _wanted(desk, organiser, request.path_params["path"])
        id_ = gid.removeprefix(f"{kind}_")
        outcome = await _unless_left(request, exports.build(kind, id_, form))
        match outcome:
            case Built():
                await _still_theirs(auth, request, outcome)
                return _FileResponse(outcome, f"{gid}.{form}", MEDIA_TYPES[form])
            case BuildingOthers():
                text = "Other files are being written. Please try again."
                again = {"Retry-After": str(outcome.retry_after_s)}
                raise HttpRefusal(503, "EXPORT_BUSY", text, again)
            case NotBuilt():
                raise HttpRefusal(503, Code.INTERNAL, SORRY, TRY_AGAIN)
            case _:
                assert_never(outcome)

    return OrganisersEndpoint(auth, rates, respond, method="GET")


async def _wanted(desk: Desk, organiser: Caller, path: str) -> tuple[str, str, str]:
    """What a path names: a slot or a campaign that there is, and a form. Errors: HttpRefusal."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise HttpRefusal(404, "NOT_FOUND", "There is nothing here.")
    kind, gid, form = match.groups()
    slot_id, campaign_id = ids.slot_id_of(gid), ids.campaign_id_of(gid)
    if kind == "slot" and slot_id and await reading.find_slots(desk, [slot_id], organiser):
        return kind, gid, form
    if kind == "campaign" and campaign_id and await campaigns.find(desk, campaign_id, organiser):
        return kind, gid, form
    raise HttpRefusal(404, "NOT_FOUND", f"There is no such {kind}.")


async def _still_theirs(auth: Auth, request: Request, built: Built) -> None:
    """Look again at who asks, since a file can take minutes. Errors: HttpRefusal."""
    try:
        await organiser_of(auth, request)
    except BaseException:
        built.file.close()
        raise


async def _unless_left(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """What comes of the work, which ends when its client leaves. Errors: ClientDisconnect."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _FileResponse(StreamingResponse):
    """A file that is closed once it was sent, or cannot be sent any more."""

    def __init__(self, built: Built, name: str, media_type: str) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Length": str(built.size),
        }
        super().__init__(_chunks(built.file), media_type=media_type, headers=headers)
        self._file = built.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        except ClientDisconnect:
            return  # nobody is left to be told anything
        finally:
            self._file.close()


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk
