"""A value retains what a newer version stored with it, when it is written again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bson import ObjectId

from slotlock.domain.booking.booking import (
    BOOKING_FIELDS,
    BookingAction,
    BookingId,
    BookingLimit,
    BookingRef,
    BookingStatus,
    HistoryEntry,
    MadeAs,
    SlotId,
)
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Document, supports_transactions
from slotlock.infrastructure.mongo.document_parts import terms_to_document, to_terms
from slotlock.infrastructure.mongo.idempotency.codec import TYPE_FIELD, VALUE_FIELD, decode
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.booking_documents import (
    booking_to_subdocument,
    ended_booking_to_document,
    to_booking,
    to_ended_booking,
)
from slotlock.infrastructure.mongo.slots.slot_documents import to_document, to_slot_state
from slotlock.infrastructure.mongo.team_repository import _to_fields, _to_team
from slotlock.infrastructure.mongo.users.user_documents import to_new_document, to_user
from slotlock.infrastructure.redis.slot_events import _to_availability
from tests.support.domain.builders import build_slot

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
SLOT = SlotId("1" * 24)
CONFIRMED = HistoryEntry(NOW, None, BookingAction.CONFIRMED, BookingStatus.CONFIRMED)
CANCELLED = HistoryEntry(NOW, None, BookingAction.CANCELLED, BookingStatus.CANCELLED)


def test_unknown_kinds_states_and_roles_are_readable_and_give_no_rights() -> None:
    newer = {"kind": "webinar", "status": "archived", "admission": "lottery", "color": "red"}
    slot = to_slot_state({**to_document(build_slot(3, id=new_slot_id())), **newer}).slot
    assert (slot.kind, slot.status) == (SlotKind.OTHER, SlotStatus.DRAFT)
    assert slot.required_admission is SlotAdmission.QUEUE_ONLY
    user = to_new_document("Ada", "ada@slotlock.test", Role.ADMIN, None, NOW)
    assert to_user({**user, "role": "owner"}).role is Role.MEMBER


def test_a_booking_retains_the_fields_and_the_history_of_a_newer_version() -> None:
    first = {
        "at": NOW,
        "by": None,
        "action": "asked",
        "status": "pending",
        "device": "kiosk",
        "overriddenLimits": ["quota", "closed"],
    }
    stored: Document = {"id": ObjectId(), "user": ObjectId(), "seat": 7, "history": [first]}
    booking = to_booking(SLOT, stored)
    assert booking.history[0].action is BookingAction.OTHER
    assert booking.status is BookingStatus.CONFIRMED  # it takes its place
    assert booking.history[0].overridden_limits == (BookingLimit.OTHER, BookingLimit.CLOSED)
    changed = booking_to_subdocument(booking.with_entry(CONFIRMED))
    assert (changed["seat"], changed["history"][0]) == (7, first)
    assert changed["history"][1]["action"] == "confirmed"
    ended = ended_booking_to_document(booking.with_entry(CANCELLED))
    assert (ended["seat"], ended["history"][0], "id" in ended) == (7, first, False)
    unknown_end = {**ended, "history": [{**first, "status": "missed"}]}
    assert not to_ended_booking(unknown_end).status.is_live


def test_a_plain_booking_that_ends_retains_its_fields() -> None:
    stored: Document = {"id": ObjectId(), "user": ObjectId(), "seat": 7, "at": NOW}
    ended = ended_booking_to_document(to_booking(SLOT, stored).with_entry(CANCELLED))
    assert (ended["seat"], "at" in ended) == (7, False)
    assert [entry["action"] for entry in ended["history"]] == ["booked", "cancelled"]


def test_what_a_booking_declares_is_stored_with_it_and_after_its_end() -> None:
    samples = {
        datetime: NOW,
        str: "12B",
        int: 7,
        MadeAs: MadeAs.LEADER,
        UserId: UserId(str(ObjectId())),
        BookingRef: BookingRef(SLOT, BookingId(str(ObjectId()))),
    }
    plain = to_booking(SLOT, {"id": ObjectId(), "user": ObjectId(), "at": NOW})
    for attribute in BOOKING_FIELDS:
        sample = samples[attribute.value_type]
        booking = replace(plain, **{attribute.name: sample})  # type: ignore[arg-type]
        stored = booking_to_subdocument(booking)
        assert to_booking(SLOT, stored) == booking
        assert stored.keys() - booking_to_subdocument(plain).keys() == {
            "history",
            attribute.stored_name,
        }
        ended = booking.with_entry(CANCELLED)
        assert to_ended_booking(ended_booking_to_document(ended)) == ended


def test_terms_members_and_invitations_retain_the_fields_of_a_newer_version() -> None:
    terms: Document = {
        "id": ObjectId(),
        "version": 1,
        "published": True,
        "opensAt": NOW,
        "closesAt": NOW,
        "eligibleGroups": [],
        "maxBookings": None,
        "forbidOverlap": False,
        "groupLimits": [],
        "cancelUntil": None,
        "admission": "any",
        "lottery": {"at": NOW},
    }
    assert terms_to_document(to_terms(terms)) == terms
    del terms["admission"]
    assert to_terms(terms).admission is SlotAdmission.ANY
    assert to_terms({**terms, "admission": "lottery"}).admission is SlotAdmission.QUEUE_ONLY
    member = {"user": ObjectId(), "since": NOW, "number": 1, "nickname": "Ace"}
    invitation = {"email": "a@b.test", "at": NOW, "by": ObjectId(), "number": 1, "language": "de"}
    team: Document = {"name": "Relay", "members": [member], "invitations": [invitation]}
    team |= {"version": 1, "createdAt": NOW}
    assert _to_fields(_to_team({"_id": ObjectId(), **team})) == team


def test_recorded_outcomes_and_messages_of_a_newer_version_are_readable() -> None:
    assert decode({TYPE_FIELD: "BookingAction", VALUE_FIELD: "asked"}) is BookingAction.OTHER
    at = (NOW + timedelta(seconds=1)).timestamp()
    message = f'["{SLOT}",4,3,2,"archived",{at},"more"]'.encode()
    availability = _to_availability(message)
    assert (availability.version, availability.status) == (4, SlotStatus.DRAFT)


def test_members_of_replica_sets_and_routers_are_accepted() -> None:
    assert supports_transactions({"setName": "rs0"})
    assert supports_transactions({"msg": "isdbgrid"})
    assert not supports_transactions({"isWritablePrimary": True})
