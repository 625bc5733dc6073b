"""Check-in codes: the id of a booking with a proof that this server issued it.

A code has 56 letters and digits: the base32 form (RFC 4648) of the slot's id and the booking's id,
12 bytes each, and the first 11 bytes of their authentication code. Base32 has only characters that
a QR code stores compactly. Nothing is stored, and a code is valid as long as its key is configured.
The address of the calendar of one booking has such a code, too, for another purpose: for each
guardian of the user another one, which ends with the relation.
A hand scanner for American keyboards at a German computer types Y for Z and Z for Y, which are both
letters of base32: of the two readings of a code, the one with the right proof is meant.
"""

import base64
import binascii
import io

import segno

from slotlock.auth.tokens import TokenSigner
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.shared.text import strip_blanks, to_xml_text
from slotlock.domain.users.user import UserId

CHECK_IN, CALENDAR = "check-in", "booking calendar"
ID_BYTES = 12
PROOF_BYTES = 11
CODE_LENGTH = 56
SWAPPED = str.maketrans("YZyz", "ZYzy")


def booking_code(
    tokens: TokenSigner, slot_id: SlotId, booking_id: BookingId, purpose: str = CHECK_IN
) -> str:
    """Return the code of a booking for a purpose."""
    ids = bytes.fromhex(slot_id) + bytes.fromhex(booking_id)
    proof = tokens.authentication_code(purpose, ids)[:PROOF_BYTES]
    return base64.b32encode(ids + proof).decode()


def calendar_path(
    tokens: TokenSigner, slot_id: SlotId, booking_id: BookingId, guardian_id: UserId | None
) -> str:
    """Return the path of the calendar of a booking: for its user, or for a guardian."""
    code = booking_code(tokens, slot_id, booking_id, calendar_purpose(guardian_id))
    reader = f"{guardian_id}/" if guardian_id else ""
    return f"/calendars/private/bookings/{reader}{code}.ics"


def calendar_purpose(guardian_id: str | None) -> str:
    """Return the purpose of the code in the path of a calendar."""
    return f"{CALENDAR} {guardian_id}" if guardian_id else CALENDAR


def parse_booking_code(
    tokens: TokenSigner, code: str, purpose: str = CHECK_IN
) -> tuple[SlotId, BookingId] | None:
    """Return the slot and the booking of a code; None if this server did not issue it."""
    text = strip_blanks(code)
    for reading in (text, text.translate(SWAPPED)):
        if (found := _parse(tokens, reading, purpose)) is not None:
            return found
    return None


def _parse(tokens: TokenSigner, text: str, purpose: str) -> tuple[SlotId, BookingId] | None:
    if len(text) != CODE_LENGTH:
        return None
    try:
        decoded = base64.b32decode(text, casefold=True)
    except (binascii.Error, ValueError):
        return None
    ids, proof = decoded[: 2 * ID_BYTES], decoded[2 * ID_BYTES :]
    if len(proof) != PROOF_BYTES or not tokens.is_authentic(purpose, ids, proof):
        return None
    return SlotId(ids[:ID_BYTES].hex()), BookingId(ids[ID_BYTES:].hex())


# 37 modules with the quiet zone, 8 pixels each: 296 pixels, which the narrowest phone can show.
PIXELS_PER_MODULE = 8
# Up to 15 % of the picture may be unreadable, as on a scratched screen.
ERROR_CORRECTION = "m"
# The pattern that is laid over a code (ISO/IEC 18004, 7.8). Scanners read each of the eight. To
# choose the one with the fewest large areas takes three quarters of the time; codes have few.
MASK = 3


def to_qr_svg(text: str, title: str) -> str:
    """Return the QR code of a text as an SVG image, which screen readers call `title`.

    It takes about 1.5 ms, as long as a read of a slot.
    """
    svg = io.BytesIO()
    code = segno.make(text, error=ERROR_CORRECTION, micro=False, mask=MASK)
    code.save(
        svg,
        kind="svg",
        scale=PIXELS_PER_MODULE,
        light="#fff",  # readable on a dark page, too
        title=to_xml_text(title),
        xmldecl=False,
        nl=False,
        svgclass=None,
        lineclass=None,
    )
    # With both, an image that a page shows in another size is scaled, not cut off. The library
    # writes either the size or the box.
    width, height = code.symbol_size(PIXELS_PER_MODULE)
    attributes = f'role="img" viewBox="0 0 {width} {height}"'
    return svg.getvalue().decode().replace("<svg ", f"<svg {attributes} ", 1)
