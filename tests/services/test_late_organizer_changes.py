"""Changes by organizers of attendance, waiting lists and resources that arrive after every timeout.

The route to MongoDB holds the write of a change until the change has its answer. The answer is an
error that says that the outcome is unknown, and never a refusal.
"""

from datetime import timedelta

import pytest

from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.refusals import Locked
from slotlock.domain.resources.resource import Resource, ResourceKind, ResourceNotFound
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.resources.repository import ResourceRepository
from slotlock.services import resources
from slotlock.services.booking import attendance, waitlist
from slotlock.services.booking.changes import BookingChangeRequest
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import (
    Act,
    LateStore,
    Prepare,
    answer_before_write,
    assert_late_write_is_unknown,
    short_timeouts,
    store,
    take_unknown_for_conflict,
    with_conflict,
)

__all__ = ["short_timeouts", "store"]

ORGANIZER = Caller(UserId("e" * 24), Role.ORGANIZER, "session", NOW)


async def prepare_attendance(store: LateStore) -> BookingChangeRequest:
    """Return a booking, whose slot has started, as an organizer names it."""
    slot_id = await store.insert_slot()
    booking = await store.new_booking(slot_id)
    store.advance(timedelta(days=1))
    return BookingChangeRequest(slot_id, booking.id, ORGANIZER)


async def prepare_check_in(store: LateStore) -> Act:
    """Return what checks a user in."""
    request = await prepare_attendance(store)
    return lambda: attendance.check_in(store.services, request)


async def prepare_undone_check_in(store: LateStore) -> Act:
    """Return what takes a check-in back."""
    request = await prepare_attendance(store)
    await attendance.check_in(store.services, request)
    return lambda: attendance.undo_check_in(store.services, request)


async def prepare_no_show(store: LateStore) -> Act:
    """Return what marks a booking as a no-show."""
    request = await prepare_attendance(store)
    return lambda: attendance.mark_no_show(store.services, request)


async def prepare_undone_no_show(store: LateStore) -> Act:
    """Return what takes a no-show back."""
    request = await prepare_attendance(store)
    await attendance.mark_no_show(store.services, request)
    return lambda: attendance.undo_no_show(store.services, request)


async def prepare_waitlisted_user(store: LateStore) -> Act:
    """Return what puts another user on the waiting list of a full slot."""
    user, slot_id = await store.new_user(), await store.insert_slot()
    await store.new_booking(slot_id)
    by = ORGANIZER.user_id
    return lambda: waitlist.join(store.services, slot_id, user.id, 0.0, waitlisted_by=by)


async def new_resource(store: LateStore) -> str:
    """Return the name of a new resource."""
    name = f"Room {new_slot_id()}"
    assert await store.services.resources.insert(Resource(name))
    return name


async def prepare_resource_creation(store: LateStore) -> Act:
    """Return what creates a resource."""
    name, kind = f"Room {new_slot_id()}", ResourceKind.ROOM
    return lambda: resources.create(store.services, name, kind, ORGANIZER.user_id)


async def prepare_resource_change(store: LateStore) -> Act:
    """Return what changes the kind of a resource."""
    name, kind = await new_resource(store), ResourceKind.ROOM
    return lambda: resources.update(store.services, name, kind, ORGANIZER.user_id)


async def prepare_resource_deletion(store: LateStore) -> Act:
    """Return what deletes a resource."""
    name = await new_resource(store)
    return lambda: resources.delete(store.services, name, ORGANIZER.user_id)


async def prepare_resource_import(store: LateStore) -> Act:
    """Return what imports a resource."""
    names, kind, by = [f"Room {new_slot_id()}"], ResourceKind.ROOM, ORGANIZER.user_id
    return lambda: resources.import_names(store.services, names, kind, by, dry_run=False)


BOOKING_CHANGES = [
    prepare_check_in,
    prepare_undone_check_in,
    prepare_no_show,
    prepare_undone_no_show,
    prepare_waitlisted_user,
]


@pytest.mark.parametrize(
    "prepare",
    [
        *BOOKING_CHANGES,
        prepare_resource_creation,
        prepare_resource_change,
        prepare_resource_deletion,
        prepare_resource_import,
    ],
)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, prepare: Prepare
) -> None:
    await assert_late_write_is_unknown(store, prepare)


@pytest.mark.parametrize("prepare", BOOKING_CHANGES)
async def test_control_a_late_change_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, prepare: Prepare
) -> None:
    act = await prepare(store)
    take_unknown_for_conflict(monkeypatch)
    before = await store.find_all()
    answer = await answer_before_write(store, act)
    assert isinstance(answer, CommandResult)
    assert isinstance(answer.outcome, Locked)
    await store.deliver_held()
    assert await store.find_all() != before


@pytest.mark.parametrize(
    ("prepare", "name", "refusal"),
    [
        (prepare_resource_creation, "insert", InvalidInput),
        (prepare_resource_change, "update", ResourceNotFound),
    ],
)
async def test_control_a_late_resource_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Prepare,
    name: str,
    refusal: type,
) -> None:
    act = await prepare(store)
    write = with_conflict(getattr(ResourceRepository, name), conflict=False)
    monkeypatch.setattr(ResourceRepository, name, write)
    before = await store.find_all()
    assert isinstance(await answer_before_write(store, act), refusal)
    await store.deliver_held()
    assert await store.find_all() != before
