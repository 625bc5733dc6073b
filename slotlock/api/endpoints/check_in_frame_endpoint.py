"""`POST /check-in/frames`: the text of the QR code before a camera (docs/decisions/0077).

Browsers that read no codes send what their camera sees. It is decoded, and not stored.
"""

import asyncio
from functools import partial
from math import isqrt

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from slotlock.api.endpoints.callers import require_caller
from slotlock.api.endpoints.endpoint import Endpoint
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.domain.users.user import Caller
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError, check_declared_body, receive_body
from slotlock.services.container import Services

MEDIA_TYPE = "application/octet-stream"
# In pixels. The code of a booking has 37 modules a side, with its margin.
MIN_SIDE, MAX_SIDE = 80, 400
BAD_FRAME = f"A frame is a square of {MIN_SIDE} to {MAX_SIDE} gray pixels a side, a byte for each."


async def _respond(
    one_at_a_time: asyncio.Semaphore, auth: Auth, caller: Caller, request: Request
) -> Response:
    """Return the text of the code in the frame, or null."""
    check_declared_body(request.headers, MEDIA_TYPE)
    pixels = await receive_body(request.receive, MAX_SIDE**2)
    side = isqrt(len(pixels))
    if side**2 != len(pixels) or side < MIN_SIDE:
        raise HttpError(400, BAD_FRAME)
    async with one_at_a_time:
        code = await asyncio.to_thread(read_code, pixels, side)
    return JSONResponse({"code": code})


def read_code(pixels: bytes, side: int) -> str | None:
    """Return the text of a QR code in a square of gray pixels; None without one."""
    import zxingcpp  # only processes that decode frames load it

    frame = memoryview(pixels).cast("B", shape=[side, side])
    qr_codes = zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode)
    found = zxingcpp.read_barcodes(frame, formats=qr_codes)
    # Codes of bookings are ASCII. What is left of another one is no code of a booking.
    return found[0].bytes.decode("ascii", "replace") if found else None


def check_in_frame_endpoint(
    services: Services, auth: Auth, rate_limits: OperationRateLimits
) -> Endpoint[Caller]:
    """Create the endpoint of `POST /check-in/frames`, for organizers and all who lead slots."""
    check, handler = partial(_require_door, services), partial(_respond, asyncio.Semaphore(1))
    return Endpoint(auth, rate_limits, check, handler, ("POST",), costs={OperationKind.FRAME: 1})


async def _require_door(services: Services, auth: Auth, token: VerifiedToken) -> Caller:
    caller = await require_caller(auth, token)
    if not caller.is_organizer and not await services.resources.find_led(caller.user_id):
        raise HttpError(403, "Only organizers may do this, and those who lead slots.")
    return caller
