"""What clients read of a slot: the projection to the selected facts and parts, and their values.

Most slots are read by a plain projection, which costs MongoDB a fraction of the one for decisions.
The document alone does not tell the free places of a slot whose deadline has come, because a hold
may have expired or a place may be promised. Such a slot is loaded again as for a decision.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from bson import ObjectId
from bson.codec_options import CodecOptions

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SLOT_FIELDS, Slot, SlotStatus
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.listing import SlotSelection
from slotlock.domain.slots.selected_slot import SelectedSlot
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import CODEC_OPTIONS, WITHOUT_ZONES, Document
from slotlock.infrastructure.mongo.slots.booking_documents import to_booking
from slotlock.infrastructure.mongo.slots.slot_documents import (
    FROM_STORED,
    STORED_NAMES,
    to_waitlist_entry,
)

_DEFAULTS = {field.name: field.default for field in fields(Slot)} | {"next_deadline": None}
_STORED_NAMES = {**STORED_NAMES, "version": "version"}
# The state of a slot that tells its free places, or that they must be read in another way.
_STORED_NAMES_OF_REMAINING = {"remaining": "remaining", "next_deadline": "nextDeadline"}

Convert = Callable[[Any], object]


@value_object
class SlotReadRequest:
    """Which slot to read at `now`, what of it, and the users whose own parts are read."""

    slot_id: SlotId
    now: datetime
    selection: SlotSelection
    user_ids: tuple[UserId, ...] = ()


@value_object
class Column:
    """One attribute of a reading: its field in the document, and the conversion of its value.

    A document without the field has the default; `MISSING` if each document has the field.
    """

    name: str
    stored_name: str
    convert: Convert | None
    default: object


_TIMES = {each.name for each in SLOT_FIELDS if each.type in (datetime, datetime | None)}
_TIMES.add("next_deadline")
# Attributes with times inside, which their conversions do not change.
_FACTS_WITH_TIMES = frozenset({"cancellation", "meetings", "terms"})


@lru_cache(maxsize=1_000)
def codec_for(selection: SlotSelection) -> CodecOptions[Document]:
    """Return how to decode the documents that a selection reads: the converter adds zones."""
    has_rows = selection.shows_bookings or selection.my_waitlist_entry
    is_plain = not has_rows and _FACTS_WITH_TIMES.isdisjoint(selection.needed_facts)
    return WITHOUT_ZONES if is_plain else CODEC_OPTIONS


@lru_cache(maxsize=1_000)
def columns_of(selection: SlotSelection) -> tuple[Column, ...]:
    """Return the columns of the facts and the counts that a selection reads."""
    names = {name: _STORED_NAMES[name] for name in sorted(selection.needed_facts)}
    if selection.remaining:
        names |= _STORED_NAMES_OF_REMAINING
    return tuple(
        Column(name, stored_name, FROM_STORED.get(name), _DEFAULTS.get(name, MISSING))
        for name, stored_name in names.items()
    )


def merged_read_projection(reads: Sequence[SlotReadRequest]) -> Document:
    """Return the projection that reads enough of each slot for all these reads."""
    selections = {read.selection for read in reads}
    selection = SlotSelection(
        remaining=any(each.remaining for each in selections),
        my_booking=any(each.my_booking for each in selections),
        my_waitlist_entry=any(each.my_waitlist_entry for each in selections),
        waitlist_length=any(each.waitlist_length for each in selections),
        booked_by=any(each.booked_by for each in selections),
        facts=frozenset().union(*(each.facts for each in selections)),
    )
    return read_projection(selection, {user_id for read in reads for user_id in read.user_ids})


def read_projection(selection: SlotSelection, user_ids: Iterable[UserId]) -> Document:
    """Return the projection to the selected facts and the selected parts of these users."""
    projection: Document = {column.stored_name: 1 for column in columns_of(selection)}
    if selection.shows_bookings or selection.my_waitlist_entry:
        users = [ObjectId(user_id) for user_id in user_ids]
        projection |= _rows_projection(selection, users)
    if selection.waitlist_length:
        projection["waitlistLength"] = {"$size": "$waitlist"}
    return projection or {"_id": 1}


def _rows_projection(selection: SlotSelection, users: list[ObjectId]) -> Document:
    projection: Document = {}
    shown_bookings: list[Document] = []
    if selection.my_booking and users:
        shown_bookings.append({"$in": ["$$this.user", users]})
    if selection.booked_by:
        shown_bookings.append({"$eq": ["$capacity", 1]})
    if shown_bookings:
        projection["bookings"] = {
            "$filter": {"input": "$bookings", "cond": {"$or": shown_bookings}}
        }
    if selection.my_waitlist_entry and users:
        is_own = {"$in": ["$$this.user", users]}
        projection["ownWaitlistEntries"] = {"$filter": {"input": "$waitlist", "cond": is_own}}
    return projection


class SelectedSlotConverter:
    """Converts the documents of slots to what one selection reads of them.

    A document may have been read for several users and selections.
    """

    def __init__(self, selection: SlotSelection) -> None:
        columns = columns_of(selection)
        required = [column for column in columns if column.default is MISSING]
        self._selection = selection
        # Most values are in every document, in the form in which they are shown.
        self._unchanged = [
            (each.name, each.stored_name)
            for each in required
            if not each.convert and each.name not in _TIMES
        ]
        self._times = [
            (each.name, each.stored_name, each.default) for each in columns if each.name in _TIMES
        ]
        if selection.waitlist_length:
            self._unchanged.append(("waitlist_length", "waitlistLength"))
        self._converted: list[tuple[str, str, Convert]] = [("id", "_id", str)]
        self._converted += [
            (each.name, each.stored_name, each.convert) for each in required if each.convert
        ]
        self._optional = [
            (each.name, each.stored_name, each.convert, each.default)
            for each in columns
            if each.default is not MISSING and each.name not in _TIMES
        ]
        self._has_rows = selection.shows_bookings or selection.my_waitlist_entry

    def convert_all(
        self, documents: Iterable[Document], user_ids: Collection[UserId]
    ) -> list[SelectedSlot]:
        """Return what was selected of each document for these users, or for an anonymous client.

        Raises:
            KeyError: a document lacks a field, or has a value that is not one of its domain.
        """
        unchanged, converted, optional = self._unchanged, self._converted, self._optional
        times = self._times
        readings = []
        for document in documents:
            reading = SelectedSlot()
            for name, stored_name, convert in converted:
                setattr(reading, name, convert(document[stored_name]))
            for name, stored_name, default in times:
                at = document[stored_name] if default is MISSING else document.get(stored_name)
                # A third of the time of `replace`. With a zone, it stays as it is.
                setattr(reading, name, at and datetime.combine(at.date(), at.time(), UTC))
            for name, stored_name in unchanged:
                setattr(reading, name, document[stored_name])
            for name, stored_name, convert_optional, default in optional:
                value = document.get(stored_name, default)
                if value is not default and value is not None and convert_optional is not None:
                    value = convert_optional(value)
                setattr(reading, name, value)
            if self._has_rows:
                for name, rows in self._rows(reading.id, document, user_ids):
                    setattr(reading, name, rows)
            readings.append(reading)
        return readings

    def _rows(
        self, slot_id: SlotId, document: Document, user_ids: Collection[UserId]
    ) -> Iterator[tuple[str, object]]:
        if self._selection.shows_bookings:
            shown = _shown_bookings(document, self._selection, user_ids)
            yield "bookings", tuple([to_booking(slot_id, each) for each in shown])
        if self._selection.my_waitlist_entry:
            entries = own_rows(document.get("ownWaitlistEntries", ()), user_ids)
            yield "waitlist", tuple([to_waitlist_entry(slot_id, each) for each in entries])


converter_for = lru_cache(maxsize=1_000)(SelectedSlotConverter)


def _shown_bookings(
    document: Document, selection: SlotSelection, user_ids: Collection[UserId]
) -> Sequence[Document]:
    loaded: Sequence[Document] = document.get("bookings", ())
    if selection.booked_by and document["capacity"] == 1:
        return loaded
    return own_rows(loaded, user_ids if selection.my_booking else ())


def own_rows(rows: Sequence[Document], user_ids: Collection[UserId]) -> Sequence[Document]:
    """Return the bookings or waitlist entries of users; those of others were read for others."""
    return [each for each in rows if str(each["user"]) in user_ids]


def needs_decision_state(reading: SelectedSlot, selection: SlotSelection, now: datetime) -> bool:
    """Return whether the free places as of `now` may differ from those that are stored.

    Expired holds, and places promised to the waiting list, have a deadline that has come. Where
    groups are limited, the deadline covers only promises that the present groups of users allow.
    """
    if not selection.remaining or reading.status is SlotStatus.CANCELLED:
        return False
    if reading.next_deadline is not None and reading.next_deadline <= now:
        return True
    return reading.limits_groups and not reading.is_booked
