"""`GET /draws/{draw}/record`: the public record of a draw, as it is stored.

It is sent part by part, so that memory use does not depend on the number of users.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.api.endpoints.callers import optional_caller, require_caller, verify_and_charge
from slotlock.api.endpoints.downloads import accepts_gzip, content_disposition, has_etag
from slotlock.api.endpoints.organizer_endpoint import query_params
from slotlock.api.endpoints.responses import method_not_allowed, respond_in_time
from slotlock.auth.container import Auth
from slotlock.graphql.core import ids
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.mongo.draws.text_repository import GZIP_WBITS
from slotlock.services.campaigns import campaigns
from slotlock.services.container import Services
from slotlock.services.draws import draws, public_records

# As a calendar: anonymous clients may read it, so that addresses have a limit as well.
RECORD_READ_COST = 10


class DrawRecordEndpoint:
    """The ASGI application of `/draws/{draw}/record`."""

    def __init__(
        self,
        services: Services,
        auth: Auth,
        rate_limits: OperationRateLimits,
        *,
        public_reads: bool,
    ) -> None:
        self._services = services
        self._auth = auth
        self._rate_limits = rate_limits
        self._find_viewer = optional_caller if public_reads else require_caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        response = await respond_in_time("a draw record", self._respond(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        costs = {OperationKind.READ: RECORD_READ_COST}
        token = await verify_and_charge(self._auth, self._rate_limits, request, costs)
        if request.method != "GET":
            raise method_not_allowed("GET")
        viewer = await self._find_viewer(self._auth, token)
        part = query_params(request, "part").get("part")
        if part not in (None, "closed"):
            raise HttpError(400, "`part` is closed.")
        draw_id = ids.parse_draw_id(request.path_params["draw"])
        draw = draw_id and await draws.find_visible(self._services, draw_id, viewer)
        found = draw and await public_records.find_name(self._services, draw, viewer)
        if not draw or not found:
            raise HttpError(404, "There is no such record.")
        name = draw.root if part and draw.root else found
        is_packed = accepts_gzip(request)
        headers = {
            "ETag": f'W/"{name}"',  # of the text, however it is compressed
            "Cache-Control": "private, no-cache",
            "Vary": "Authorization, Accept-Encoding",
        }
        if has_etag(request, f'"{name}"'):
            return Response(status_code=304, headers=headers)
        campaign = await campaigns.find(self._services, draw.campaign_id, viewer)
        file_name = f"draw-record-{self._services.now():%Y-%m-%d}.json"
        subject = campaign.name if campaign else ""
        headers["Content-Disposition"] = content_disposition(subject, file_name)
        headers |= {"Content-Encoding": "gzip"} if is_packed else {}
        parts = self._services.draw_texts.read(draw.id, name)
        content = parts if is_packed else _unpacked(parts)
        return StreamingResponse(content, media_type="application/json", headers=headers)


async def _unpacked(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(wbits=GZIP_WBITS)
    async for part in parts:
        yield await asyncio.to_thread(unpacker.decompress, part)
