"""Cursors (relay.dev/graphql/connections.htm): opaque positions, each valid in one list only.

A cursor holds a position and a checksum of the position and the list's name. The checksum detects
cursors that were truncated, altered or taken from another list. It is no signature: a forged cursor
leads only to a position in a list that the client may read anyway, so positions are validated too.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeVar

import orjson

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.audit.audit_log import AuditPosition
from slotlock.domain.shared.pagination import Position, TitlePosition, UpcomingPosition
from slotlock.domain.shared.text import validate_line
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import parse_ticket_id, ticket_global_id

At = TypeVar("At")

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


class PositionKind(NamedTuple, Generic[At]):
    """How a kind of position is written as numbers and strings, and read; None if it is invalid."""

    write: Callable[[At], tuple[object, ...]]
    read: Callable[[list[object]], At | None]


class ListCursors(Generic[At]):
    """The cursors of one list, whose items have positions of one kind."""

    def __init__(
        self, list_name: str, kind: PositionKind[At], position_of: Callable[[Any], At]
    ) -> None:
        self._list_name = list_name
        self._kind = kind
        self._position_of = position_of

    def of_item(self, item: object) -> str:
        """Return the cursor of an item."""
        return self.encode(self._position_of(item))

    def encode(self, position: At) -> str:
        """Return the cursor of a position."""
        return encode_cursor(self._list_name, *self._kind.write(position))

    def decode(self, cursor: str | None) -> At | None:
        """Return the position after which a page starts; None for the first page.

        Errors: BAD_USER_INPUT.
        """
        if not cursor:  # many clients have no null for "from the start"
            return None
        try:
            parts = orjson.loads(urlsafe_b64decode(cursor.encode("ascii"))[CHECKSUM_BYTES:])
            if isinstance(parts, list) and encode_cursor(self._list_name, *parts) == cursor:
                position = self._kind.read(parts)
                if position is not None:
                    return position
        except (ValueError, TypeError, OverflowError):
            pass
        raise bad_input("after", "The cursor does not belong to this list.")


def _read_time(parts: list[object]) -> Position | None:
    match parts:
        case [int(at), str(id_)] if _ID.fullmatch(id_):
            return Position(_from_milliseconds(at), id_)
    return None


def _read_upcoming(parts: list[object]) -> UpcomingPosition | None:
    match parts:
        case [int(start), str(id_), int(as_of), bool(is_over)] if _ID.fullmatch(id_):
            times = _from_milliseconds(start), _from_milliseconds(as_of)
            return UpcomingPosition(times[0], id_, times[1], is_over)
    return None


def _read_title(parts: list[object]) -> TitlePosition | None:
    match parts:
        case [str(sort_key), str(id_)] if _ID.fullmatch(id_):
            return TitlePosition(sort_key, id_)
    return None


def _read_id(parts: list[object]) -> str | None:
    match parts:
        case [str(id_)] if _ID.fullmatch(id_):
            return id_
    return None


def _read_name(parts: list[object]) -> str | None:
    match parts:
        case [str(name)] if name and not validate_line(name.replace("\t", ""), MAX_NAME_LENGTH):
            return name
    return None


def _read_ticket(parts: list[object]) -> TicketRef | None:
    match parts:
        case [str(id_)]:
            return parse_ticket_id(id_)
    return None


def _read_entry(parts: list[object]) -> AuditPosition | None:
    match parts:
        case [int(at), str(id_), int(index)] if _ID.fullmatch(id_) and 0 <= index < MAX_ENTRIES:
            return AuditPosition(_from_milliseconds(at), id_, index)
    return None


def _read_outbox_entry(parts: list[object]) -> Position | None:
    match parts:
        case [int(at), str(id_)] if ":" in id_ and not validate_line(id_, MAX_NAME_LENGTH):
            return Position(_from_milliseconds(at), id_)
    return None


def _to_milliseconds(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def _from_milliseconds(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


BY_TIME = PositionKind[Position](lambda at: (_to_milliseconds(at.start), at.id), _read_time)
BY_OUTBOX_ENTRY = BY_TIME._replace(read=_read_outbox_entry)
BY_UPCOMING = PositionKind[UpcomingPosition](
    lambda at: (_to_milliseconds(at.start), at.id, _to_milliseconds(at.as_of), at.is_over),
    _read_upcoming,
)
BY_TITLE = PositionKind[TitlePosition](lambda at: (at.sort_key, at.id), _read_title)
BY_ID = PositionKind[str](lambda id_: (id_,), _read_id)
BY_NAME = PositionKind[str](lambda name: (name,), _read_name)
BY_TICKET = PositionKind[TicketRef](lambda ref: (ticket_global_id(ref),), _read_ticket)
BY_AUDIT_ENTRY = PositionKind[AuditPosition](
    lambda at: (_to_milliseconds(at.at), at.id, at.entry_index), _read_entry
)
