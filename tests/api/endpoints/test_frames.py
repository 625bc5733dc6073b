"""The server reads the code that a camera at the door sees, and nothing else of its picture."""

import asyncio
import secrets
from typing import Any

import pytest
import segno
from PIL import Image, ImageFilter

from slotlock.api.endpoints.check_in_frame_endpoint import MAX_SIDE, MIN_SIDE, read_code
from tests.support.clients.booking_client import BookingClient

CODE = "A2" * 28
SIDE = 360
BYTES = {"Content-Type": "application/octet-stream"}


def frame_of(text: str | bytes, angle: float = 0) -> bytes:
    """Return the pixels of a gray, blurred picture of a QR code, which lies askew."""
    matrix = [*segno.make_qr(text, error="m").matrix_iter(scale=4, border=4)]
    code = Image.new("L", (len(matrix), len(matrix)))
    code.putdata([50 if dark else 190 for row in matrix for dark in row])
    code = code.resize((SIDE * 3 // 5,) * 2).rotate(angle, expand=True, fillcolor=120)
    picture = Image.new("L", (SIDE, SIDE), 120)
    picture.paste(code, ((SIDE - code.width) // 2, (SIDE - code.height) // 2))
    return picture.filter(ImageFilter.GaussianBlur(0.7)).tobytes()


@pytest.mark.parametrize("angle", [0, 20, 90, 200])
def test_a_code_that_lies_askew_in_poor_light_is_read(angle: float) -> None:
    assert read_code(frame_of(CODE, angle), SIDE) == CODE


def test_a_code_of_another_program_is_text_whatever_its_bytes_are() -> None:
    assert read_code(frame_of(bytes(range(128, 192))), SIDE) == "\ufffd" * 64


async def post(organizer: BookingClient, body: bytes, **headers: str) -> tuple[int, Any]:
    """Send a frame; return the status and the body of the response."""
    url, sent = f"{organizer.url}/check-in/frames", {**organizer.headers, **BYTES, **headers}
    response = await organizer.http.post(url, content=body, headers=sent)
    return response.status_code, response.json()


async def test_each_frame_gets_its_own_code_or_none(organizer: BookingClient) -> None:
    codes = [None, "first", "second", None, "third"]
    frames = [frame_of(code) if code else secrets.token_bytes(SIDE**2) for code in codes]
    found = await asyncio.gather(*(post(organizer, frame) for frame in frames))
    assert found == [(200, {"code": code}) for code in codes]


@pytest.mark.parametrize(
    ("body", "status", "content_type"),
    [
        (b"", 400, ""),
        (bytes(SIDE**2 - 1), 400, ""),
        (bytes((MIN_SIDE - 1) ** 2), 400, ""),
        (bytes((MAX_SIDE + 1) ** 2), 413, ""),
        (b"\xff\xd8\xff\xe0" + bytes(SIDE**2 - 4), 415, "image/jpeg"),
    ],
)
async def test_what_is_no_frame_is_refused_before_it_is_read(
    organizer: BookingClient, body: bytes, status: int, content_type: str
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    refused, error = await post(organizer, body, **headers)
    assert (refused, set(error)) == (status, {"error", "code"})


@pytest.mark.parametrize("pattern", ["1011101", "1000001", "10"])
async def test_a_picture_full_of_marks_has_no_code(organizer: BookingClient, pattern: str) -> None:
    row = "".join(pattern for _ in range(MAX_SIDE))[:MAX_SIDE]
    body = bytes(255 * (a == b) for a in row for b in row)
    assert await post(organizer, body) == (200, {"code": None})
