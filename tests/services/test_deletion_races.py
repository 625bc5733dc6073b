"""Deletions of slots and campaigns that meet a booking or a new slot: exactly one of both wins.

The other change is made between the decision of the first and its write.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked, BookingCancelled
from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import (
    CampaignDeleted,
    CampaignDraft,
    CampaignInUse,
    CampaignNotFound,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.slots.slot_outcomes import SlotHasBookings, SlotSaved, SlotsDeleted
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.campaigns import campaigns
from slotlock.services.slots import deletion, editing
from tests.support.domain.builders import NOW, build_draft
from tests.support.stores.late_store import ADA, LateStore, store

__all__ = ["store"]

Act = Callable[[], Awaitable[object]]


def run_before(
    monkeypatch: pytest.MonkeyPatch, repository: type, method_name: str, act: Act
) -> None:
    """Run an act before the first call of a method."""
    original, acts = getattr(repository, method_name), [act]

    async def act_and_call(*args: Any, **options: Any) -> object:
        while acts:
            await acts.pop()()
        return await original(*args, **options)

    monkeypatch.setattr(repository, method_name, act_and_call)


async def delete_slot(store: LateStore, slot_id: SlotId) -> object:
    return (await deletion.delete(store.services, slot_id, ADA.user_id)).outcome


async def exists(store: LateStore, slot_id: SlotId) -> bool:
    slots = store.services.slot_writer._database["slots"]
    return await slots.find_one({"_id": ObjectId(slot_id)}) is not None


async def test_a_booking_that_is_written_first_prevents_the_deletion(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await store.insert_slot()
    run_before(monkeypatch, SlotWriter, "commit", lambda: store.new_booking(slot_id))
    assert await delete_slot(store, slot_id) == SlotHasBookings(slot_id)
    assert await store.count_bookings(slot_id) == 1


async def test_a_booking_that_ended_meanwhile_prevents_the_deletion(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await store.insert_slot()

    async def book_and_cancel() -> None:
        booking = await store.new_booking(slot_id)
        request = BookingChangeRequest(slot_id, booking.id, ADA)
        outcome = (await change_booking(store.services, cancel, request)).outcome
        assert isinstance(outcome, BookingCancelled)

    run_before(monkeypatch, SlotWriter, "commit", book_and_cancel)
    assert await delete_slot(store, slot_id) == SlotHasBookings(slot_id)
    assert await exists(store, slot_id)


async def test_control_without_the_version_a_deletion_takes_a_booking_with_it(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await store.insert_slot()

    def filter_by_id(slot: Any) -> Document:
        return {"_id": ObjectId(slot.id)}

    monkeypatch.setattr(slot_document_updates, "version_filter", filter_by_id)
    run_before(monkeypatch, SlotWriter, "commit", lambda: store.new_booking(slot_id))
    assert await delete_slot(store, slot_id) == SlotsDeleted((slot_id,))
    assert not await exists(store, slot_id)


async def test_a_booking_that_is_written_after_the_deletion_finds_no_slot(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await store.insert_slot()
    run_before(monkeypatch, BookingAdder, "add_bookings", lambda: delete_slot(store, slot_id))
    assert await store.book(slot_id) == SlotNotFound(slot_id)
    assert not await exists(store, slot_id)
    assert not isinstance(await store.book(slot_id), Booked)


async def insert_campaign(store: LateStore) -> CampaignId:
    """Insert a campaign that is not published and return its id."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    return saved.campaign.id


async def delete_campaign(store: LateStore, campaign_id: CampaignId) -> object:
    return await campaigns.delete(store.services, campaign_id, ADA.user_id)


async def create_slot(store: LateStore, campaign_id: CampaignId) -> object:
    """Create a slot in a campaign and return the outcome."""
    start = NOW + timedelta(days=1)
    end, kind = start + timedelta(hours=1), SlotKind.MEETING
    draft = build_draft("Late", start, end, "UTC", 1, None, kind, False)
    return (await editing.create(store.services, draft, ADA.user_id, campaign_id)).outcome


async def test_a_slot_that_is_created_first_prevents_the_deletion_of_its_campaign(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign_id = await insert_campaign(store)
    run_before(monkeypatch, CampaignRepository, "delete", lambda: create_slot(store, campaign_id))
    in_use = CampaignInUse(published=False, has_slots=True)
    assert await delete_campaign(store, campaign_id) == in_use


async def test_control_without_the_check_in_the_write_a_slot_loses_its_campaign(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign_id = await insert_campaign(store)

    async def find_no_slot(*_: object) -> None:
        """Find no slot of any campaign."""

    run_before(monkeypatch, CampaignRepository, "delete", lambda: create_slot(store, campaign_id))
    monkeypatch.setattr(CampaignRepository, "_find_slot_id", find_no_slot)
    assert await delete_campaign(store, campaign_id) == CampaignDeleted(campaign_id)
    slots = store.services.slot_writer._database["slots"]
    assert await slots.find_one({"campaign.id": ObjectId(campaign_id)})


async def test_a_slot_that_is_created_after_the_deletion_finds_no_campaign(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign_id = await insert_campaign(store)
    run_before(monkeypatch, SlotWriter, "commit", lambda: delete_campaign(store, campaign_id))
    outcome = await create_slot(store, campaign_id)
    assert outcome == CampaignNotFound(campaign_id)
    assert not isinstance(outcome, SlotSaved)


async def test_a_deletion_is_never_noted_before_the_last_change_of_its_slot(
    store: LateStore,
) -> None:
    # Another process whose clock is ahead changed the slot.
    changed_at, slot_id = NOW + timedelta(minutes=1), await store.insert_slot()
    database, of_slot = store.services.slot_writer._database, ObjectId(slot_id)
    await database["slots"].update_one({"_id": of_slot}, {"$set": {"changedAt": changed_at}})
    assert isinstance(await delete_slot(store, slot_id), SlotsDeleted)
    note = await database["audit_notes"].find_one({"slot": of_slot, "action": "slot_deleted"})
    assert note is not None
    assert note["at"] == changed_at
