"""A user whose groups change waits with the new ones, even after crashes or concurrent joins."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignSaved
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.domain.user_files.plan import ImportPlan, plan_import
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync
from slotlock.services.booking import book, waitlist
from slotlock.services.campaigns import campaigns
from slotlock.services.slots import editing
from slotlock.services.workers import hold_sweeper
from slotlock.services.workers.hold_sweeper import finish_interrupted_changes
from tests.support.domain.builders import build_draft
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair

ONE_OF_A_CLASS = (GroupLimit("5a", 1), GroupLimit("5b", 1))
LATER = timedelta(minutes=1)


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Open two sets of services on their own database, without a running sweeper."""
    with open_service_pair(servers, "waiting_groups") as opened:
        yield opened


def carry(pair: ServicePair, user: Caller, group: str) -> None:
    """Give a user a group, through the second services."""
    users, organizer = pair.services[1].users, pair.organizer.user_id
    pair.runner.run(users.set_groups(user.user_id, (group,), organizer, pair.clock.now))


@pytest.fixture
def slot_id(pair: ServicePair) -> SlotId:
    """Create a slot with two places where a user of 5a has one and no other of 5a may have one."""
    organizer, services = pair.organizer.user_id, pair.services[0]
    campaign_draft = CampaignDraft(
        "Project week",
        opens_at=MORNING,
        closes_at=MORNING + timedelta(days=9),
        published=True,
        group_limits=ONE_OF_A_CLASS,
    )
    stored = pair.runner.run(campaigns.create(services, campaign_draft, organizer))
    assert isinstance(stored, CampaignSaved)
    start = MORNING + timedelta(days=10)
    end = start + timedelta(hours=1)
    draft = build_draft("A course", start, end, "UTC", 2, None, SlotKind.COURSE, published=True)
    made = pair.runner.run(editing.create(services, draft, organizer, stored.campaign.id))
    assert isinstance(made.outcome, SlotSaved)
    slot_id = made.outcome.slot_id
    for user in pair.callers[:2]:
        carry(pair, user, "5a")
    # No test may pass because of what these changes left to the sweeper.
    sweep_later(pair)
    assert pair.database["waitlist_group_updates"].count_documents({}) == 0
    ada = pair.callers[0]
    pair.runner.run(book.book_slot(services, ada, slot_id, ada.user_id, book.BookingOptions()))
    return slot_id


def sweep_later(pair: ServicePair) -> None:
    """Run what the second services' sweeper does after all writes in flight are complete."""
    pair.clock.advance(LATER)
    pair.runner.run(finish_interrupted_changes(pair.services[1]))
    pair.runner.run(hold_sweeper.sweep(pair.services[1]))


def has_place(pair: ServicePair, user: Caller, slot_id: SlotId) -> bool:
    """Return whether a user has a place in the slot."""
    slot = pair.database["slots"].find_one({"_id": ObjectId(slot_id)}) or {}
    return ObjectId(user.user_id) in [booking["user"] for booking in slot["bookings"]]


def imports(pair: ServicePair, user: Caller, group: str) -> ImportPlan:
    """Give a user this group by an imported file; return the import's outcome."""
    user_imports = pair.services[0].user_imports

    async def as_the_file_says() -> ImportPlan:
        email = pair.emails[user.user_id]
        seen = await user_imports.load_snapshot([email])
        plan = plan_import([UserRow(2, email, None, (group,))], seen.users_by_login_name)
        assert isinstance(plan, ImportPlan)
        if not plan.is_empty:
            written = await user_imports.commit(plan, seen, pair.clock.now)
            assert written is ImportAttempt.WRITTEN
        return plan

    return pair.runner.run(as_the_file_says())


def test_a_waitlist_entry_in_flight_gets_the_new_group(pair: ServicePair, slot_id: SlotId) -> None:
    ben, services = pair.callers[1], pair.services[0]

    async def both() -> None:
        writes = pair.slot_writer(0)
        reached = writes.pause_next_commit()
        joining = asyncio.create_task(waitlist.join(services, slot_id, ben.user_id, 0.0))
        await reached.wait()
        organizer = pair.organizer.user_id
        await pair.services[1].users.set_groups(ben.user_id, ("5b",), organizer, pair.clock.now)
        writes.resume_event.set()
        await joining

    pair.runner.run(both())
    assert not has_place(pair, ben, slot_id)
    sweep_later(pair)
    assert has_place(pair, ben, slot_id)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_an_import_whose_process_died_after_its_write_is_finished_by_another_process(
    is_guarded: bool, pair: ServicePair, slot_id: SlotId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the import's transaction marked nothing, nobody would know of it: the control."""
    ben = pair.callers[1]
    pair.runner.run(waitlist.join(pair.services[0], slot_id, ben.user_id, 0.0))

    async def dies(*_: object) -> None:
        raise RuntimeError

    async def marks_nothing(*_: object) -> None:
        pass

    with monkeypatch.context() as dying:
        dying.setattr(WaitlistGroupSync, "sync_now", dies)
        if not is_guarded:
            dying.setattr(WaitlistGroupSync, "mark_pending", marks_nothing)
        with pytest.raises(RuntimeError):
            imports(pair, ben, "5b")
    # The file is not imported again, because it changes nothing.
    assert imports(pair, ben, "5b").is_empty
    sweep_later(pair)
    assert has_place(pair, ben, slot_id) is is_guarded


def test_the_last_of_two_changes_wins(
    pair: ServicePair, slot_id: SlotId, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben, soon = pair.callers[1], WaitlistGroupSync.sync_now
    pair.runner.run(waitlist.join(pair.services[0], slot_id, ben.user_id, 0.0))

    async def late(self: WaitlistGroupSync, *arguments: object) -> None:
        monkeypatch.setattr(WaitlistGroupSync, "sync_now", soon)
        organizer = pair.organizer.user_id
        await pair.services[1].users.set_groups(ben.user_id, ("5c",), organizer, pair.clock.now)
        await soon(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(WaitlistGroupSync, "sync_now", late)
    imports(pair, ben, "5b")
    slot = pair.database["slots"].find_one({"_id": ObjectId(slot_id)}) or {}
    assert [attempt["groups"] for attempt in slot["waitlist"]] == [["5c"]]
