"""The logo of a site: a small image that a browser shows."""

import binascii
from base64 import b64decode
from hashlib import sha256

from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.value_object import value_object

MAX_BYTES = 100_000
# Four characters of Base64 are three bytes.
MAX_TEXT_LENGTH = (MAX_BYTES + 2) // 3 * 4
# How images of each kind begin. An SVG is none of them: it can have scripts.
SIGNATURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n", b""),
    "image/jpeg": (b"\xff\xd8\xff", b""),
    "image/webp": (b"RIFF", b"WEBP"),
}


@value_object
class Logo:
    """An image, and its kind as a media type."""

    content: bytes
    media_type: str

    @property
    def digest(self) -> str:
        """A hash of the image, for its address."""
        return sha256(self.content).hexdigest()[:16]


def read_logo(text: str) -> Logo | Problem:
    """Return the image that a text has in Base64, or its problem."""
    if len(text) > MAX_TEXT_LENGTH:
        return ProblemCode.IMAGE_TOO_LARGE.problem(maximum=MAX_BYTES // 1000)
    try:
        content = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ProblemCode.NOT_AN_IMAGE.problem()
    if len(content) > MAX_BYTES:
        return ProblemCode.IMAGE_TOO_LARGE.problem(maximum=MAX_BYTES // 1000)
    for media_type, (first, later) in SIGNATURES.items():
        if content.startswith(first) and content[8:12].startswith(later):
            return Logo(content, media_type)
    return ProblemCode.NOT_AN_IMAGE.problem()
