"""A write that arrives after every timeout: a refusal means that nothing happened and nothing will.

The route to MongoDB holds the writes of an act until it has ended. Then it delivers them.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import BookingChangeRequest, CommandResult
from slotlock.domain.booking.rules.booking_changes import cancel, confirm
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.slots import booking_adder
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.write_set import CommitResult
from slotlock.services.booking import move, waitlist
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.booking.booking_changes import change_booking
from tests.support.stores.late_store import (
    ADA,
    BOB,
    LateStore,
    is_commit,
    is_slot_update,
    is_update,
    short_timeouts,
    store,
    take_unknown_for_conflict,
)

__all__ = ["short_timeouts", "store"]


@pytest.fixture
def long_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time to settle a write."""
    monkeypatch.setattr(booking_adder, "SETTLE_TIMEOUT_S", 20.0)


async def test_a_booking_that_arrives_late_never_happens_after_a_refusal(
    store: LateStore, long_settling: None
) -> None:
    slot_id = await store.insert_slot()
    store.route.is_held = is_slot_update
    assert isinstance(await store.book(slot_id), Locked)
    await store.deliver_held()
    assert await store.count_bookings(slot_id) == 0


async def test_control_without_settling_a_refused_booking_happens_late(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def conflict(self: BookingAdder, update: object) -> CommitResult:
        return CommitResult.CONFLICT

    monkeypatch.setattr(BookingAdder, "settle", conflict)
    slot_id = await store.insert_slot()
    store.route.is_held = is_slot_update
    assert isinstance(await store.book(slot_id), Locked)
    await store.deliver_held()
    assert await store.count_bookings(slot_id) == 1


async def test_a_booking_whose_first_write_is_late_is_booked_once(
    store: LateStore, long_settling: None
) -> None:
    slot_id = await store.insert_slot(capacity=5)
    store.route.is_held = lambda message: not store.route.held and is_slot_update(message)
    assert isinstance(await store.book(slot_id), Booked)
    await store.deliver_held()
    assert await store.count_bookings(slot_id) == 1


async def test_a_booking_that_cannot_be_settled_has_an_unknown_outcome(store: LateStore) -> None:
    slot_id = await store.insert_slot()
    store.route.is_held = is_update
    with pytest.raises(CommitUnknownError):
        await store.book(slot_id)
    await store.deliver_held()
    assert await store.count_bookings(slot_id) == 1


Act = Callable[[], Awaitable[CommandResult[Any]]]
Prepare = Callable[[LateStore], Awaitable[tuple[SlotId, Act]]]


async def prepare_booking_with_key(store: LateStore) -> tuple[SlotId, Act]:
    """Return an empty slot, and what books it."""
    slot_id = await store.insert_slot()
    options = BookingOptions(key=slot_id)
    return slot_id, lambda: book_slot(store.services, ADA, slot_id, ADA.user_id, options)


async def prepare_confirmation(store: LateStore) -> tuple[SlotId, Act]:
    """Return a slot with a hold, and what confirms it."""
    slot_id = await store.insert_slot(hold_minutes=10)
    booking = await store.new_booking(slot_id, hold=True)
    request = BookingChangeRequest(slot_id, booking.id, ADA)
    return slot_id, lambda: change_booking(store.services, confirm, request)


async def prepare_cancellation(store: LateStore) -> tuple[SlotId, Act]:
    """Return a slot with a booking, and what cancels it."""
    slot_id = await store.insert_slot()
    request = BookingChangeRequest(slot_id, (await store.new_booking(slot_id)).id, ADA)
    return slot_id, lambda: change_booking(store.services, cancel, request)


async def prepare_move(store: LateStore) -> tuple[SlotId, Act]:
    """Return a slot with a booking, and what moves it."""
    slot_id, target_id = await store.insert_slot(), await store.insert_slot()
    request = BookingChangeRequest(slot_id, (await store.new_booking(slot_id)).id, ADA)
    return slot_id, lambda: move.move(store.services, request, target_id)


async def prepare_joining(store: LateStore) -> tuple[SlotId, Act]:
    """Return a full slot, and what joins its waiting list."""
    slot_id = await store.insert_slot()
    await store.new_booking(slot_id)
    return slot_id, lambda: waitlist.join(store.services, slot_id, BOB.user_id, 0.0)


async def prepare_leaving(store: LateStore) -> tuple[SlotId, Act]:
    """Return a slot with a waiting list, and what leaves it."""
    slot_id, join = await prepare_joining(store)
    await join()
    return slot_id, lambda: waitlist.leave(store.services, slot_id, BOB.user_id, 0.0)


each_act = pytest.mark.parametrize(
    "prepare",
    [
        prepare_booking_with_key,
        prepare_confirmation,
        prepare_cancellation,
        prepare_move,
        prepare_joining,
        prepare_leaving,
    ],
)


@each_act
async def test_an_act_whose_commit_is_late_has_an_unknown_outcome(
    store: LateStore, prepare: Prepare
) -> None:
    slot_id, act = await prepare(store)
    before = await store.find_document(slot_id)
    store.route.is_held = is_commit
    with pytest.raises(CommitUnknownError):
        await act()
    await store.deliver_held()
    assert await store.find_document(slot_id) != before


@each_act
async def test_control_an_act_whose_late_commit_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_unknown_for_conflict(monkeypatch)
    slot_id, act = await prepare(store)
    before = await store.find_document(slot_id)
    store.route.is_held = is_commit
    assert isinstance((await act()).outcome, Locked)
    assert store.route.held
    await store.deliver_held()
    assert await store.find_document(slot_id) != before
