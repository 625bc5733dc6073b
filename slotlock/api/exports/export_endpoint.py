"""`GET /exports/slots/{id}.csv`, `.xlsx` or `.pdf`, and the same for campaigns, for organizers.

The leader of a slot gets the files of the slot without addresses.

`?by=user`, `group` or `resource` turns the rosters of a campaign around.
`/exports/campaigns/{id}/slots.csv` or `.xlsx` are the slots of a campaign, as an import reads them.
`/exports/links/{token}` is an export by a signed link, which a browser can follow.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import date
from typing import Any, BinaryIO, TypeVar, assert_never
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import (
    name_caller,
    recheck,
    recheck_organizer,
    require_caller,
)
from slotlock.api.endpoints.csv_files import csv_header, csv_line
from slotlock.api.endpoints.downloads import (
    choose_separator,
    content_disposition,
    preferred_languages,
)
from slotlock.api.endpoints.endpoint import Endpoint, any_token, query_params
from slotlock.api.exports.export_builder import (
    Export,
    ExportBuilder,
    ExportBusy,
    ExportFailed,
    ExportFile,
    ExportJob,
    ExportTooLarge,
)
from slotlock.api.exports.sheet_texts import choose_language
from slotlock.api.exports.table_texts import sheet_name
from slotlock.auth import export_links
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.auth.tokens import EXPIRED_MESSAGE, BadTokenError, TokenClaims
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.export_formats import (
    CsvSeparator,
    ExportFormat,
    ExportGrouping,
    ExportLanguage,
)
from slotlock.domain.schedule.zones import to_local_time
from slotlock.domain.slot_files.columns import COLUMNS, headers_in
from slotlock.domain.users.user import Caller
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import INTERNAL_MESSAGE, RETRY_AFTER_HEADERS, ErrorCode
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.request_deadline import untimed
from slotlock.services.booking.permissions import with_led_slots
from slotlock.services.campaigns import campaigns
from slotlock.services.campaigns.slot_files import export_slots
from slotlock.services.container import Services
from slotlock.services.slots import viewer_queries

MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pdf": "application/pdf",
}
CONTENTS = {"csv": "roster", "xlsx": "roster", "pdf": "sign-in-sheets"}
CONTENTS_BY = {"user": "users", "group": "users-by-group", "resource": "timetables"}
TOO_LARGE_TEXT = "The sheets have too many rows for one PDF. Export each slot by itself."
EXPIRED = "This link has expired. Please create a new one."
INVALID = "This link is not valid. Please create a new one."
SESSION_ENDED = "This link ended with the session that created it. Please create a new one."
NO_READER = "Only organizers may download this file, and those who lead the slot."
CHUNK_BYTES = 65_536
_SLOTS_PATH = re.compile(r"campaigns/([^/]{1,100})/slots\.(csv|xlsx)")
_PATH = re.compile(r"(slot|campaign)s/([^/]{1,100})\.(csv|xlsx|pdf)")

Result = TypeVar("Result")
Member = TypeVar("Member", ExportLanguage, ExportGrouping)


def exports_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, exports: "Exports"
) -> Endpoint[Caller]:
    """Create the endpoint of every path under `/exports/` except links."""
    return Endpoint(auth, rate_limits, require_caller, exports.respond, ("GET",))


def export_links_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, exports: "Exports"
) -> Endpoint[VerifiedToken]:
    """Create the endpoint of the links to exports, whose paths are secrets."""
    return Endpoint(
        auth,
        rate_limits,
        any_token,
        exports.respond_to_link,
        ("GET", "HEAD"),  # the server sends no body to HEAD
        subject="an export link",
        verify=lambda auth, request: export_links.verify(auth, request.path_params["token"]),
    )


class Exports:
    """Downloads of rosters in all formats."""

    def __init__(self, services: Services, builder: ExportBuilder) -> None:
        self._services = services
        self._builder = builder

    async def respond(self, auth: Auth, caller: Caller, request: Request) -> Response:
        """Build the file that the path names, and send it."""
        # A link of a browser may have more parameters: programs of mail add some.
        query_params(request, "separator", "language", "by")
        return await self.download(auth, caller, request, request.path_params["path"])

    async def respond_to_link(self, auth: Auth, token: VerifiedToken, request: Request) -> Response:
        """Build the file of the export in the token of a link, and send it."""
        if not isinstance(token, TokenClaims):
            expired = str(token) == EXPIRED_MESSAGE
            raise (
                HttpError(410, EXPIRED, code="LINK_EXPIRED") if expired else HttpError(403, INVALID)
            )
        try:
            caller = await export_links.load_downloader(auth, token)
        except BadTokenError:
            raise HttpError(403, SESSION_ENDED) from None
        name_caller(caller)
        return await self.download(auth, caller, request, token.export or "")

    async def download(self, auth: Auth, caller: Caller, request: Request, export: str) -> Response:
        """Build the file of an export such as `slots/slot_....csv`, and send it.

        The export, the address or the language of the request names the separator of CSV, in this
        order, and the language of a PDF. The first two name that of a table, which otherwise has
        the names and codes of the API.

        Raises:
            HttpError: 400 for an unknown separator, language or grouping, or one that the format
                lacks, 403 for who neither is an organizer nor leads the slot, 404 without such a
                slot or campaign, 413 for a PDF with too many rows, 503 if MongoDB is unavailable or
                other exports take long.
        """
        path, _, of_link = export.partition("?")
        await self._require_reader(caller, path)
        options = {**request.query_params, **dict(parse_qsl(of_link))}
        accepted = request.headers.get("accept-language")
        separator = choose_separator(options.get("separator"), accepted)
        language = _find_member(ExportLanguage, "language", options.get("language"))
        grouping = _find_member(ExportGrouping, "by", options.get("by")) or ExportGrouping.SLOT
        if slots := _SLOTS_PATH.fullmatch(path):
            campaign, ending = slots.groups()
            return await self._download_slots(caller, campaign, ending, separator, language)
        match = _PATH.fullmatch(path)
        if match is None:
            raise HttpError(404, "There is nothing here.")
        kind, global_id, file_format = match.groups()
        is_campaign = kind == "campaign"
        if problem := grouping.problem_with(ExportFormat(file_format), is_campaign=is_campaign):
            raise HttpError(400, problem)
        if file_format == "pdf":
            language = language or choose_language(preferred_languages(accepted))
        subject, day = await self._find_target(caller, kind, global_id)
        id_ = global_id.removeprefix(f"{kind}_")
        now, for_leader = self._services.now(), not caller.is_organizer
        job = ExportJob(kind, id_, file_format, now, separator, language, grouping, for_leader)
        with untimed():
            outcome = await _cancel_on_disconnect(request, self._builder.build(job))
        file = require_file(outcome)
        await self._recheck(auth, caller, path, file)
        content = CONTENTS_BY.get(grouping, CONTENTS[file_format])
        rest = f"{day}.{file_format}"
        ending = f"{sheet_name(content, language)}-{rest}"
        plain = ending if ending.isascii() else f"{content}-{rest}"
        disposition = content_disposition(subject, ending, plain_ending=plain)
        return FileResponse(file, disposition, MEDIA_TYPES[file_format])

    async def _require_reader(self, caller: Caller, path: str) -> None:
        """Require an organizer, or for the files of a slot one who leads it.

        Raises:
            HttpError: 403 for others, also without such a slot.
        """
        if caller.is_organizer:
            return
        match = _PATH.fullmatch(path)
        slot_id = ids.parse_slot_id(match[2]) if match else None
        if slot_id is not None:
            caller = await with_led_slots(self._services, caller, [slot_id])
        if slot_id not in caller.leads:
            raise HttpError(403, NO_READER)

    async def _recheck(self, auth: Auth, before: Caller, path: str, export: ExportFile) -> None:
        """Check the caller again: building a file can take minutes.

        A file with addresses is only for organizers, also if the caller leads the slot by now.
        """
        try:
            if before.is_organizer:
                await recheck_organizer(auth, before)
            else:
                await self._require_reader(await recheck(auth, before), path)
        except BaseException:
            export.file.close()
            raise

    async def _download_slots(
        self,
        organizer: Caller,
        global_id: str,
        file_format: str,
        separator: CsvSeparator,
        language: ExportLanguage | None,
    ) -> Response:
        """Send the slots of a campaign as the file that an import reads."""
        name, day = await self._find_target(organizer, "campaign", global_id)
        campaign_id = CampaignId(global_id.removeprefix("campaign_"))
        slots = await export_slots(self._services, campaign_id)
        rows = [headers_in(language), *([each[column] for column in COLUMNS] for each in slots)]
        content = await asyncio.to_thread(_to_file, rows, file_format, separator)
        disposition = content_disposition(name, f"slots-{day}.{file_format}")
        headers = {"Content-Disposition": disposition}
        return Response(content, media_type=MEDIA_TYPES[file_format], headers=headers)

    async def _find_target(self, organizer: Caller, kind: str, global_id: str) -> tuple[str, date]:
        """Return the title of a slot and its day, or the name of a campaign and today.

        Raises:
            HttpError: 404 if the slot or campaign does not exist.
        """
        if kind == "slot" and (slot_id := ids.parse_slot_id(global_id)):
            found = await viewer_queries.find_slots(self._services, [slot_id], organizer)
            if view := found.get(slot_id):
                slot = view.slot
                return slot.title, to_local_time(slot.start, slot.time_zone).date()
        if kind == "campaign" and (campaign_id := ids.parse_campaign_id(global_id)):
            campaign = await campaigns.find(self._services, campaign_id, organizer)
            if campaign is not None:
                zone = (await self._services.site.load()).time_zone
                return campaign.name, to_local_time(self._services.now(), zone).date()
        raise HttpError(404, f"There is no such {kind}.")


def _to_file(rows: Sequence[Sequence[str]], file_format: str, separator: CsvSeparator) -> bytes:
    if file_format == "xlsx":
        # Other workbooks have a process of their own, so that this one may never need the library.
        from slotlock.api.exports.workbook import text_workbook

        return text_workbook(rows)
    header, *lines = rows
    texts = (csv_header(header, separator), *(csv_line(line, separator) for line in lines))
    return "".join(texts).encode()


def _find_member(kind: type[Member], name: str, value: str | None) -> Member | None:
    """Return the member that a parameter names; None without the parameter."""
    try:
        return kind(value) if value is not None else None
    except ValueError:
        raise HttpError(400, f"`{name}` is one of {', '.join(kind)}.") from None


async def _cancel_on_disconnect(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of the work, which is cancelled if the client disconnects.

    Raises:
        ClientDisconnect: the client disconnected first.
    """
    working = asyncio.ensure_future(work)
    disconnecting = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait((working, disconnecting), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        disconnecting.cancel()
        await asyncio.gather(working, disconnecting, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def require_file(outcome: Export) -> ExportFile:
    """Return the file that was built. Raises HttpError: 413 or 503 without one."""
    match outcome:
        case ExportFile():
            return outcome
        case ExportBusy():
            headers = {"Retry-After": str(outcome.retry_after_s)}
            text = "Other exports are in progress. Please try again."
            raise HttpError(503, text, headers, code="EXPORT_BUSY")
        case ExportTooLarge():
            raise HttpError(413, TOO_LARGE_TEXT, code=ErrorCode.LIMIT_EXCEEDED)
        case ExportFailed():
            raise HttpError(503, INTERNAL_MESSAGE, RETRY_AFTER_HEADERS)
        case _:
            assert_never(outcome)


class FileResponse(StreamingResponse):
    """Sends a file and closes it, even if the client disconnects."""

    def __init__(self, export: ExportFile, disposition: str, media_type: str) -> None:
        headers = {"Content-Disposition": disposition, "Content-Length": str(export.size)}
        if export.has_missing_glyphs:
            headers["X-Missing-Glyphs"] = "true"  # for clients of other origins, too (`app.py`)
        super().__init__(_chunks(export.file), media_type=media_type, headers=headers)
        self._file = export.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        except ClientDisconnect:
            return
        finally:
            self._file.close()


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
