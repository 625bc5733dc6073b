"""Cursors (relay.dev/graphql/connections.htm): opaque positions, each valid in one list only.

A cursor holds a position and a checksum of the position and the list's name. The checksum detects
cursors that were truncated, altered or taken from another list. It is no signature: a forged cursor
leads only to a position in a list that the client may read anyway, so positions are validated too.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import orjson

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.audit.log import AuditPosition
from slotlock.domain.shared.pagination import Position, TitlePosition
from slotlock.domain.shared.text import validate_line
from slotlock.graphql.core.errors import GraphQLRequestError, bad_input
from slotlock.graphql.core.ids import parse_ticket_id, ticket_global_id

CHECKSUM_BYTES = 6
# Twice the longest e-mail address (RFC 5321, 4.5.3.1); every name is shorter.
MAX_NAME_LENGTH = 640
MAX_ENTRIES = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


def encode_cursor(list_name: str, *parts: object) -> str:
    """Encode a position of numbers and strings as a cursor of the named list."""
    packed = orjson.dumps(parts)
    check = blake2b(list_name.encode() + b"\0" + packed, digest_size=CHECKSUM_BYTES).digest()
    return urlsafe_b64encode(check + packed).decode()


def decode_cursor(list_name: str, cursor: str) -> list[object]:
    """Return the position that a cursor of the named list encodes. Errors: BAD_USER_INPUT."""
    try:
        position = orjson.loads(urlsafe_b64decode(cursor.encode("ascii"))[CHECKSUM_BYTES:])
        if isinstance(position, list) and encode_cursor(list_name, *position) == cursor:
            return position
    except (ValueError, TypeError):
        pass
    raise _invalid_cursor()


def encode_title_position(list_name: str, position: TitlePosition) -> str:
    """Encode the sort key of a title and an id as a cursor of the named list."""
    return encode_cursor(list_name, position.sort_key, position.id)


def decode_title_position(list_name: str, cursor: str | None) -> TitlePosition | None:
    """Return the sort key and the id that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(sort_key), str(id_)] if _ID.fullmatch(id_):
            return TitlePosition(sort_key, id_)
    raise _invalid_cursor()


def encode_position(list_name: str, position: Position) -> str:
    """Encode a time and an id as a cursor of the named list."""
    return encode_cursor(list_name, _to_milliseconds(position.start), position.id)


def decode_position(list_name: str, cursor: str | None) -> Position | None:
    """Return the time and the id that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [int(at), str(id_)] if _ID.fullmatch(id_):
            return Position(_from_milliseconds(at), id_)
    raise _invalid_cursor()


def decode_id(list_name: str, cursor: str | None) -> str | None:
    """Return the id that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(id_)] if _ID.fullmatch(id_):
            return id_
    raise _invalid_cursor()


def decode_name(list_name: str, cursor: str | None) -> str | None:
    """Return the name that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(name)] if name and not validate_line(name, MAX_NAME_LENGTH):
            return name
    raise _invalid_cursor()


def encode_audit_position(list_name: str, position: AuditPosition) -> str:
    """Encode the position of an audit log entry."""
    return encode_cursor(
        list_name, _to_milliseconds(position.at), position.id, position.entry_index
    )


def decode_audit_position(list_name: str, cursor: str | None) -> AuditPosition | None:
    """Return the position in the audit log that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [int(at), str(id_), int(index)] if _ID.fullmatch(id_) and 0 <= index < MAX_ENTRIES:
            return AuditPosition(_from_milliseconds(at), id_, index)
    raise _invalid_cursor()


def encode_ticket(list_name: str, ref: TicketRef) -> str:
    """Encode the position of a ticket."""
    return encode_cursor(list_name, ticket_global_id(ref))


def decode_ticket(list_name: str, cursor: str | None) -> TicketRef | None:
    """Return the ticket that a cursor encodes. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match decode_cursor(list_name, cursor):
        case [str(id_)] if ref := parse_ticket_id(id_):
            return ref
    raise _invalid_cursor()


def _to_milliseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def _from_milliseconds(milliseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise _invalid_cursor() from None


def _invalid_cursor() -> GraphQLRequestError:
    return bad_input("after", "The cursor does not belong to this list.")
