"""The second write of a change arrives after every timeout, and the first one in time.

The route to MongoDB holds only the second write until the change has its answer.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.campaign import CampaignDraft, CampaignPatch, CampaignSaved
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.client import Document, may_have_written
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.users import waitlist_groups
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.services.booking import waitlist
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.campaigns import campaigns
from slotlock.services.erasure import finish_erasure
from tests.support.domain.builders import NOW, build_slot
from tests.support.stores.late_store import (
    ADA,
    Act,
    LateStore,
    answer_before_write,
    is_plain_slot_update,
    short_timeouts,
    store,
)
from tests.support.stores.slots import insert_new_slots

__all__ = ["short_timeouts", "store"]

ADMIN = Caller(UserId("e" * 24), Role.ADMIN, "session", NOW)


async def prepare_terms(store: LateStore) -> tuple[SlotId, Act]:
    """Return a slot of a campaign, and what changes the terms of the campaign."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    slot = build_slot(id=new_slot_id(), terms=saved.campaign.terms)
    await insert_new_slots(store.services.slot_writer._database, slot)
    change = CampaignPatch(max_bookings=2)
    return slot.id, lambda: campaigns.edit(store.services, saved.campaign.id, change, ADA.user_id)


async def test_changed_terms_that_reach_their_slots_late_have_an_unknown_outcome(
    store: LateStore,
) -> None:
    slot_id, act = await prepare_terms(store)
    outcome = await answer_before_write(store, act, is_plain_slot_update)
    assert isinstance(outcome, Exception), outcome
    assert may_have_written(outcome)
    assert (await store.find_document(slot_id))["campaign"]["version"] == 1
    await store.deliver_held()
    assert (await store.find_document(slot_id))["campaign"]["version"] == 2


async def replace_late_terms(store: LateStore) -> int:
    """Change terms late, and then to 3 bookings. Return how many a slot allows after both."""
    slot_id, act = await prepare_terms(store)
    await answer_before_write(store, act, is_plain_slot_update)
    campaign_id = CampaignId(str((await store.find_document(slot_id))["campaign"]["id"]))
    newer = CampaignPatch(max_bookings=3)
    await store.deliver_held_after(
        lambda: campaigns.edit(store.services, campaign_id, newer, ADA.user_id)
    )
    max_bookings: int = (await store.find_document(slot_id))["campaign"]["maxBookings"]
    return max_bookings


def drop_condition(monkeypatch: pytest.MonkeyPatch, method: str, field: str) -> None:
    """Let updates of collections ignore a version."""
    update: Callable[..., Awaitable[object]] = getattr(AsyncCollection, method)

    def update_any(self: object, query: Document, *changes: object) -> Awaitable[object]:
        query.pop(field, None)
        return update(self, query, *changes)

    monkeypatch.setattr(AsyncCollection, method, update_any)


async def test_changed_terms_that_reach_their_slots_late_do_not_replace_newer_ones(
    store: LateStore,
) -> None:
    assert await replace_late_terms(store) == 3


async def test_control_without_versions_late_terms_replace_newer_ones(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_condition(monkeypatch, "update_many", "campaign.version")
    assert await replace_late_terms(store) == 2


async def test_an_erasure_whose_rest_is_late_has_an_unknown_outcome(store: LateStore) -> None:
    user, slot_id = await store.new_user(), await store.insert_slot()
    caller = Caller(user.id, Role.MEMBER, "session", NOW)
    await book_slot(store.services, caller, slot_id, user.id, BookingOptions())
    erasure = await account_admin.erase_account(store.auth, ADMIN, user.id)
    assert isinstance(erasure, Erasure)
    outcome = await answer_before_write(store, lambda: finish_erasure(store.services, erasure))
    assert isinstance(outcome, Exception), outcome
    assert may_have_written(outcome)
    assert await store.count_bookings(slot_id) == 1
    await store.deliver_held()
    assert await store.count_bookings(slot_id) == 0


async def waitlisted_groups(store: LateStore, slot_id: SlotId) -> list[str]:
    """Return the groups in the only entry of a waiting list."""
    (entry,) = (await store.find_document(slot_id))["waitlist"]
    groups: list[str] = entry.get("groups", [])
    return groups


async def prepare_waiting_user(store: LateStore) -> tuple[SlotId, User]:
    """Return a full slot with limits for groups, and the user who waits for it."""
    slot = build_slot(id=new_slot_id(), group_limits=(GroupLimit("class:*", 1),))
    await insert_new_slots(store.services.slot_writer._database, slot)
    await store.new_booking(slot.id)
    user = await store.new_user()
    await waitlist.join(store.services, slot.id, user.id, 0.0)
    return slot.id, user


async def set_groups_late(store: LateStore, monkeypatch: pytest.MonkeyPatch) -> tuple[SlotId, User]:
    """Set the groups of a waiting user to A, which does not reach the waiting list yet."""
    monkeypatch.setattr(waitlist_groups, "SYNC_TIMEOUT_S", 0.5)
    slot_id, user = await prepare_waiting_user(store)

    async def act() -> object:
        return await groups_and_bans.set_groups(store.auth, ADMIN, user.id, ["A"])

    assert isinstance(await answer_before_write(store, act, is_plain_slot_update), User)
    assert await waitlisted_groups(store, slot_id) == []
    return slot_id, user


async def replace_late_groups(store: LateStore, monkeypatch: pytest.MonkeyPatch) -> SlotId:
    """Set the groups of a waiting user to A in a late write and then to B, and return the slot."""
    slot_id, user = await set_groups_late(store, monkeypatch)

    async def set_newer_groups() -> None:
        await groups_and_bans.set_groups(store.auth, ADMIN, user.id, ["B"])
        assert await waitlisted_groups(store, slot_id) == ["B"]

    await store.deliver_held_after(set_newer_groups)
    return slot_id


async def test_groups_that_reach_a_waiting_list_late_do_not_replace_newer_ones(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = await replace_late_groups(store, monkeypatch)
    assert await waitlisted_groups(store, slot_id) == ["B"]


async def test_control_without_versions_late_groups_replace_newer_ones(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_condition(monkeypatch, "update_one", "version")
    slot_id = await replace_late_groups(store, monkeypatch)
    assert await waitlisted_groups(store, slot_id) == ["A"]


async def test_groups_that_never_reach_a_waiting_list_are_copied_by_the_sweeper(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id, _ = await set_groups_late(store, monkeypatch)
    store.route.is_held = lambda _: False
    later = NOW + timedelta(minutes=1)
    await store.services.waitlist_groups.sync_pending(later, later)
    assert await waitlisted_groups(store, slot_id) == ["A"]
