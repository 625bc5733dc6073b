"""`GET /draws/{draw}/record`: the public record of a draw, as it is stored.

It is sent part by part, so that memory use does not depend on the number of users.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from slotlock.api.endpoints.callers import optional_caller, require_caller
from slotlock.api.endpoints.downloads import accepts_gzip, content_disposition, has_etag
from slotlock.api.endpoints.endpoint import Check, Endpoint, query_params
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
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


def draw_record_endpoint(
    services: Services, auth: Auth, rate_limits: OperationRateLimits, *, public_reads: bool
) -> Endpoint[Caller | None]:
    """Create the endpoint of `/draws/{draw}/record`."""
    check: Check[Caller | None] = optional_caller if public_reads else require_caller
    costs = {OperationKind.READ: RECORD_READ_COST}
    return Endpoint(auth, rate_limits, check, partial(_respond, services), ("GET",), costs=costs)


async def _respond(
    services: Services, _auth: Auth, viewer: Caller | None, request: Request
) -> Response:
    part = query_params(request, "part").get("part")
    if part not in (None, "closed"):
        raise HttpError(400, "`part` is closed.")
    draw_id = ids.parse_draw_id(request.path_params["draw"])
    draw = draw_id and await draws.find_visible(services, draw_id, viewer)
    found = draw and await public_records.find_name(services, draw, viewer)
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
    campaign = await campaigns.find(services, draw.campaign_id, viewer)
    file_name = f"draw-record-{services.now():%Y-%m-%d}.json"
    subject = campaign.name if campaign else ""
    headers["Content-Disposition"] = content_disposition(subject, file_name)
    headers |= {"Content-Encoding": "gzip"} if is_packed else {}
    parts = services.draw_texts.read(draw.id, name)
    content = parts if is_packed else _unpacked(parts)
    return StreamingResponse(content, media_type="application/json", headers=headers)


async def _unpacked(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(wbits=GZIP_WBITS)
    async for part in parts:
        yield await asyncio.to_thread(unpacker.decompress, part)
