"""A booking that was decided before a no-show was marked meets the limit of no-shows."""

from datetime import timedelta
from typing import Any

import pytest

from slotlock.domain.booking.booking import BookingAction
from slotlock.domain.booking.outcomes import Booked, NoShowMarked
from slotlock.domain.booking.refusals import TooManyNoShows
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import NoShowLimit
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import change_set
from slotlock.infrastructure.mongo.slots.writing.writer import SlotWriter
from slotlock.services.booking import attendance
from slotlock.services.booking.changes import BookingChangeRequest
from slotlock.services.campaigns import campaigns
from tests.support.domain.builders import NOW, build_slot
from tests.support.stores.late_store import LateStore, store
from tests.support.stores.slots import insert_new_slots

__all__ = ["store"]

DAY = timedelta(days=1)
ORGANIZER = Caller(UserId("e" * 24), Role.ORGANIZER, "session", NOW)


async def book_while_a_no_show_is_marked(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> object:
    """Return the outcome of Ada's booking, before whose write an organizer marks a no-show."""
    draft = CampaignDraft(
        "Sports", NOW, NOW + 3 * DAY, published=True, no_show_limit=NoShowLimit(count=1, days=7)
    )
    saved = await campaigns.create(store.services, draft, ORGANIZER.user_id)
    assert isinstance(saved, CampaignSaved)
    missed, later = [
        build_slot(id=new_slot_id(), start=start, end=start + DAY, terms=saved.campaign.terms)
        for start in (NOW + DAY, NOW + 3 * DAY)
    ]
    await insert_new_slots(store.services.slot_writer._database, missed, later)
    booking = await store.new_booking(missed.id)
    store.advance(DAY)
    requests = [BookingChangeRequest(missed.id, booking.id, ORGANIZER)]
    commit = SlotWriter._commit_transaction

    async def mark_and_commit(writer: SlotWriter, *arguments: Any, **options: Any) -> Any:
        while requests:
            marked = await attendance.mark_no_show(store.services, requests.pop())
            assert isinstance(marked.outcome, NoShowMarked)
        return await commit(writer, *arguments, **options)

    monkeypatch.setattr(SlotWriter, "_commit_transaction", mark_and_commit)
    outcome = await store.book(later.id)
    (stored,) = (await store.find_document(missed.id))["bookings"]
    assert stored["history"][-1]["action"] == BookingAction.NO_SHOW.value
    return outcome


async def test_a_booking_that_was_decided_before_a_no_show_is_decided_again(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = await book_while_a_no_show_is_marked(store, monkeypatch)
    assert isinstance(outcome, TooManyNoShows)


async def test_control_without_user_versions_a_booking_ignores_the_no_show(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_set, "user_version_updates", lambda *_: iter(()))
    outcome = await book_while_a_no_show_is_marked(store, monkeypatch)
    assert isinstance(outcome, Booked)
