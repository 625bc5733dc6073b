"""A version after this one: it stores fields, values and an index that this version does not know.

It stores a seat with each booking and a source with each waitlist entry. A confirmed hold is an
action, a status and a limit of its own. New slots have a new kind, and notes of them a new action.
"""

from typing import Any

from slotlock.domain.booking.booking import Booking, BookingAction, HistoryEntry
from slotlock.infrastructure import stored_enums
from slotlock.infrastructure.mongo import document_parts, repositories
from slotlock.infrastructure.mongo.audit import audit_note_repository
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.indexes.index import Index
from slotlock.infrastructure.mongo.slots import (
    booking_documents,
    slot_document_updates,
    slot_documents,
)
from tests.support.apps.pause_points import replace_everywhere

SEAT_INDEX = Index("slots", "seat", (("bookings.seat", 1),), {})
NEW_SLOT = {"kind": "webinar", "room": {"floor": 2}}
VOUCHED = {"action": "vouched", "status": "attending", "overriddenLimits": ["quota"]}


def store_as_next_version() -> None:
    """Store what the next version will store."""
    to_slot = slot_documents.to_document
    to_booking = booking_documents.booking_to_subdocument
    to_history_entry = booking_documents._history_entry_to_subdocument
    to_waitlist_entry = slot_document_updates._waitlist_entry_to_subdocument
    to_note = audit_note_repository.note_to_document

    def slot_to_document(state: Any) -> Document:
        return {**to_slot(state), **NEW_SLOT}

    def booking_to_subdocument(booking: Booking) -> Document:
        return {"seat": 7, **to_booking(booking)}

    def history_entry_to_subdocument(entry: HistoryEntry) -> Document:
        changes = VOUCHED if entry.action is BookingAction.CONFIRMED else {}
        return {**to_history_entry(entry), "device": "kiosk", **changes}

    def waitlist_entry_to_subdocument(entry: Any) -> Document:
        return {"source": "phone", **to_waitlist_entry(entry)}

    def note_to_document(note: Any) -> Document:
        return {**to_note(note), "action": "slot_cloned", "reason": "autumn"}

    replace_everywhere(to_slot, slot_to_document)
    replace_everywhere(to_booking, booking_to_subdocument)
    replace_everywhere(to_history_entry, history_entry_to_subdocument)
    replace_everywhere(to_waitlist_entry, waitlist_entry_to_subdocument)
    replace_everywhere(to_note, note_to_document)
    replace_everywhere(repositories.INDEXES, (*repositories.INDEXES, SEAT_INDEX))


def drop_unknown_fields() -> None:
    """Write bookings and waitlist entries without what another version stored with them."""

    def nothing(*_: Any) -> Document:
        return {}

    replace_everywhere(document_parts.unknown_fields, nothing)


def reject_unknown_values() -> None:
    """Read no document that has a value which is not one of its enum."""

    def member_of(value: object, unknown: Any) -> Any:
        return type(unknown)(value)

    replace_everywhere(stored_enums.from_stored, member_of)


GUARDS = {
    "unknown-fields": drop_unknown_fields,
    "unknown-values": reject_unknown_values,
}
FAULTS = {"next-version": store_as_next_version}
