"""Cursors (relay.dev/graphql/connections.htm): opaque places in lists, each good for its own list.

A cursor is a place behind a check sum over the list's name and the place, so that one that is cut
off, altered or another list's is told from a good one. The sum is no signature: who makes a cursor
up gets to a place in a list that they may read anyway, so what is in it is looked at as well.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import orjson

from slotlock.domain.audit.log import AuditPosition
from slotlock.domain.shared.pagination import Position
from slotlock.domain.shared.text import validate_line
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError

CHECKSUM_BYTES = 6
# The longest address there is (RFC 5321, 4.5.3.1), and as much again: longer than any name.
MAX_NAME_LENGTH = 640
MAX_ENTRIES = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


def encode_cursor(list_name: str, *parts: object) -> str:
    """The cursor of a place, told in numbers and texts, in a list."""
    packed = orjson.dumps(parts)
    check = blake2b(list_name.encode() + b"\0" + packed, digest_size=CHECKSUM_BYTES).digest()
    return urlsafe_b64encode(check + packed).decode()


def decode_cursor(list_name: str, cursor: str) -> list[object]:
    """The place that a cursor of this list stands for. Errors: BAD_USER_INPUT."""
    try:
        place = orjson.loads(urlsafe_b64decode(cursor.encode("ascii"))[CHECKSUM_BYTES:])
        if isinstance(place, list) and encode_cursor(list_name, *place) == cursor:
            return place
    except (ValueError, TypeError):
        pass
    raise _invalid_cursor()


def encode_position(list_name: str, position: Position) -> str:
    """The cursor of a position."""
    return encode_cursor(list_name, _to_milliseconds(position.start), position.id)


def decode_position(list_name: str, cursor: str | None) -> Position | None:
    """The position that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [int(at), str(id_)] if _ID.fullmatch(id_):
            return Position(_from_milliseconds(at), id_)
    raise _invalid_cursor()


def decode_id(list_name: str, cursor: str | None) -> str | None:
    """The id that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(id_)] if _ID.fullmatch(id_):
            return id_
    raise _invalid_cursor()


def decode_name(list_name: str, cursor: str | None) -> str | None:
    """The name that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(name)] if name and not validate_line(name, MAX_NAME_LENGTH):
            return name
    raise _invalid_cursor()


def encode_audit_position(list_name: str, position: AuditPosition) -> str:
    """The cursor of an entry in the log."""
    return encode_cursor(
        list_name, _to_milliseconds(position.at), position.id, position.entry_index
    )


def decode_audit_position(list_name: str, cursor: str | None) -> AuditPosition | None:
    """The position in the log that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [int(at), str(id_), int(number)] if _ID.fullmatch(id_) and 0 <= number < MAX_ENTRIES:
            return AuditPosition(_from_milliseconds(at), id_, number)
    raise _invalid_cursor()


def _to_milliseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def _from_milliseconds(milliseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise _invalid_cursor() from None


def _invalid_cursor() -> GraphQLRequestError:
    return GraphQLRequestError(ErrorCode.BAD_USER_INPUT, "This cursor is none of this list's.")
