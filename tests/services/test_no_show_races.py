"""A booking that was decided before a no-show was marked meets the limit of no-shows."""

from datetime import timedelta
from typing import Any

import pytest

from slotlock.domain.booking.booking import BookingAction
from slotlock.domain.booking.booking_outcomes import Booked, NoShowMarked
from slotlock.domain.booking.booking_refusals import TooManyNoShows
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.attendance import mark_no_show
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import NoShowLimit
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import write_set
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.campaigns import campaigns
from tests.support.domain.builders import NOW, build_slot
from tests.support.stores.late_store import LateStore, store
from tests.support.stores.slots import insert_new_slots

__all__ = ["store"]

DAY = timedelta(days=1)
ORGANIZER = Caller(UserId("e" * 24), Role.ORGANIZER, "session", NOW)


@pytest.mark.parametrize(
    ("has_user_versions", "outcome_type"), [(True, TooManyNoShows), (False, Booked)]
)
async def test_a_booking_that_was_decided_before_a_no_show_is_decided_again(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, has_user_versions: bool, outcome_type: type
) -> None:
    if not has_user_versions:
        monkeypatch.setattr(write_set, "user_version_updates", lambda *_: iter(()))
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
            marked = await change_booking(store.services, mark_no_show, requests.pop())
            assert isinstance(marked.outcome, NoShowMarked)
        return await commit(writer, *arguments, **options)

    monkeypatch.setattr(SlotWriter, "_commit_transaction", mark_and_commit)
    assert isinstance(await store.book(later.id), outcome_type)
    (stored,) = (await store.find_document(missed.id))["bookings"]
    assert stored["history"][-1]["action"] == BookingAction.NO_SHOW.value
