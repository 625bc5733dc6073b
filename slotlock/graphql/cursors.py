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

from slotlock.domain.audit import AuditPosition
from slotlock.domain.listing import Position
from slotlock.domain.texts import line_problem
from slotlock.graphql.errors import Code, RefusedError

SUM_BYTES = 6
# The longest address there is (RFC 5321, 4.5.3.1), and as much again: longer than any name.
MAX_NAME = 640
MOST_ENTRIES = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ID = re.compile(r"[0-9a-f]{24}", re.ASCII)


def sealed(of: str, *place: object) -> str:
    """The cursor of a place, told in numbers and texts, in a list."""
    packed = orjson.dumps(place)
    check = blake2b(of.encode() + b"\0" + packed, digest_size=SUM_BYTES).digest()
    return urlsafe_b64encode(check + packed).decode()


def opened(of: str, cursor: str) -> list[object]:
    """The place that a cursor of this list stands for. Errors: BAD_USER_INPUT."""
    try:
        place = orjson.loads(urlsafe_b64decode(cursor.encode("ascii"))[SUM_BYTES:])
        if isinstance(place, list) and sealed(of, *place) == cursor:
            return place
    except (ValueError, TypeError):
        pass
    raise _none()


def position_cursor(of: str, position: Position) -> str:
    """The cursor of a position."""
    return sealed(of, _milliseconds(position.start), position.id)


def position_of(of: str, cursor: str | None) -> Position | None:
    """The position that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match opened(of, cursor):
        case [int(at), str(id_)] if _ID.fullmatch(id_):
            return Position(_instant(at), id_)
    raise _none()


def id_of(of: str, cursor: str | None) -> str | None:
    """The id that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match opened(of, cursor):
        case [str(id_)] if _ID.fullmatch(id_):
            return id_
    raise _none()


def name_of(of: str, cursor: str | None) -> str | None:
    """The name that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match opened(of, cursor):
        case [str(name)] if name and not line_problem(name, MAX_NAME):
            return name
    raise _none()


def audit_cursor(of: str, position: AuditPosition) -> str:
    """The cursor of an entry in the log."""
    return sealed(of, _milliseconds(position.at), position.id, position.number)


def audit_position(of: str, cursor: str | None) -> AuditPosition | None:
    """The position in the log that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    match opened(of, cursor):
        case [int(at), str(id_), int(number)] if _ID.fullmatch(id_) and 0 <= number < MOST_ENTRIES:
            return AuditPosition(_instant(at), id_, number)
    raise _none()


def _milliseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def _instant(milliseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise _none() from None


def _none() -> RefusedError:
    return RefusedError(Code.BAD_USER_INPUT, "This cursor is none of this list's.")
