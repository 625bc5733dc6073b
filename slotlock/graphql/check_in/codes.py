"""Check-in codes: the id of a booking with a proof that this server issued it.

A code has 56 letters and digits: the base32 form (RFC 4648) of the slot's id and the booking's id,
12 bytes each, and the first 11 bytes of their authentication code. Base32 has only characters that
a QR code stores compactly. Nothing is stored, and a code is valid as long as its key is configured.
"""

import base64
import binascii

from slotlock.auth.tokens import TokenSigner
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.shared.text import strip_blanks

PURPOSE = "check-in"
ID_BYTES = 12
PROOF_BYTES = 11
CODE_LENGTH = 56


def check_in_code(tokens: TokenSigner, slot_id: SlotId, booking_id: BookingId) -> str:
    """Return the code of a booking."""
    ids = bytes.fromhex(slot_id) + bytes.fromhex(booking_id)
    proof = tokens.authentication_code(PURPOSE, ids)[:PROOF_BYTES]
    return base64.b32encode(ids + proof).decode()


def parse_check_in_code(tokens: TokenSigner, code: str) -> tuple[SlotId, BookingId] | None:
    """Return the slot and the booking of a code; None if this server did not issue it."""
    text = strip_blanks(code)
    if len(text) != CODE_LENGTH:
        return None
    try:
        decoded = base64.b32decode(text, casefold=True)
    except (binascii.Error, ValueError):
        return None
    ids, proof = decoded[: 2 * ID_BYTES], decoded[2 * ID_BYTES :]
    if len(proof) != PROOF_BYTES or not tokens.is_authentic(PURPOSE, ids, proof):
        return None
    return SlotId(ids[:ID_BYTES].hex()), BookingId(ids[ID_BYTES:].hex())
