"""Changes of the dates of a series that meet a booking or another change: one of both wins.

The other change is made between the decision of the first and its write.
"""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import KeyReused, SlotNotFound
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.slots.series import OnConflict, SeriesCreated
from slotlock.domain.slots.series_dates import DatesAdded, DatesRemoved, SlotsHaveBookings
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import slot_document_updates, write_set
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.slots import series_creation, series_dates
from slotlock.services.slots.series_dates import NewDates
from tests.services.test_deletion_races import run_before
from tests.support.domain.builders import NOW, build_draft
from tests.support.stores.late_store import ADA, LateStore, store

__all__ = ["store"]

START = NOW + timedelta(days=1)


async def new_series(store: LateStore) -> SeriesCreated:
    """Return a new series of two slots."""
    end, kind = START + timedelta(hours=1), SlotKind.MEETING
    draft = build_draft("Late", START, end, "UTC", 1, None, kind, True)
    rule, on_conflict = "FREQ=WEEKLY;COUNT=2", OnConflict.STRICT
    created = await series_creation.create(
        store.services, draft, rule, [], on_conflict, ADA.user_id
    )
    assert isinstance(created, SeriesCreated)
    return created


async def remove(
    store: LateStore,
    created: SeriesCreated,
    key: str | None = None,
    *,
    cancel_booked: bool = False,
    count: int = 2,
) -> object:
    """Remove slots of a series, by default both."""
    slot_ids = tuple(state.id for state in created.slots[:count])
    result = await series_dates.remove(
        store.services, created.series_id, slot_ids, ADA.user_id, key, cancel_booked=cancel_booked
    )
    return result.outcome


async def add_date(store: LateStore, created: SeriesCreated) -> object:
    """Add the day after the start to a series."""
    dates = NewDates(created.series_id, frozenset({START + timedelta(days=1)}))
    return await series_dates.add(store.services, dates, ADA.user_id)


async def stored_ids(store: LateStore, created: SeriesCreated) -> list[SlotId]:
    """Return the slots of a series that exist."""
    found = await store.services.slots.find_by_series(created.series_id, NOW)
    return [state.id for state in found]


async def test_a_booking_that_is_written_first_prevents_the_removal(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await new_series(store)
    first, second = (state.id for state in created.slots)
    run_before(monkeypatch, SlotWriter, "commit", lambda: store.new_booking(first))
    assert await remove(store, created) == SlotsHaveBookings((first,))
    assert await stored_ids(store, created) == [first, second]
    assert await store.count_bookings(first) == 1


async def test_a_booking_that_is_written_first_is_cancelled_if_that_is_permitted(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await new_series(store)
    first, second = (state.id for state in created.slots)
    run_before(monkeypatch, SlotWriter, "commit", lambda: store.new_booking(first))
    removed = await remove(store, created, cancel_booked=True)
    assert removed == DatesRemoved(created.series_id, (second,), (first,))
    assert (await store.find_document(first))["status"] == "cancelled"


async def test_control_without_the_version_a_removal_takes_a_booking_with_it(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await new_series(store)
    first, second = (state.id for state in created.slots)

    def filter_by_id(slot: Any) -> Document:
        return {"_id": ObjectId(slot.id)}

    monkeypatch.setattr(slot_document_updates, "version_filter", filter_by_id)
    run_before(monkeypatch, SlotWriter, "commit", lambda: store.new_booking(first))
    assert await remove(store, created) == DatesRemoved(created.series_id, (first, second), ())


async def test_a_booking_that_is_written_after_the_removal_finds_no_slot(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await new_series(store)
    first = created.slots[0].id
    run_before(monkeypatch, BookingAdder, "add_bookings", lambda: remove(store, created))
    assert await store.book(first) == SlotNotFound(first)
    assert await stored_ids(store, created) == []


# The other request writes before this one reads the slots, or before it writes.
before_reads_or_writes = pytest.mark.parametrize(
    ("repository", "method_name"), [(SlotRepository, "find_by_series"), (SlotWriter, "commit")]
)


@before_reads_or_writes
async def test_two_concurrent_removals_of_one_key_remove_once_and_return_the_same(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, repository: type, method_name: str
) -> None:
    created, first_outcomes = await new_series(store), list[object]()
    first, second = (state.id for state in created.slots)
    await store.new_booking(second)

    async def remove_first() -> None:
        first_outcomes.append(await remove(store, created, created.series_id, cancel_booked=True))

    run_before(monkeypatch, repository, method_name, remove_first)
    outcome = await remove(store, created, created.series_id, cancel_booked=True)
    assert [outcome] == first_outcomes
    assert outcome == DatesRemoved(created.series_id, (first,), (second,))
    assert await stored_ids(store, created) == [second]


@before_reads_or_writes
async def test_a_concurrent_removal_of_other_slots_does_not_share_its_key(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, repository: type, method_name: str
) -> None:
    created = await new_series(store)
    key = created.series_id
    run_before(monkeypatch, repository, method_name, lambda: remove(store, created, key, count=1))
    assert await remove(store, created, key) == KeyReused(key)
    assert await stored_ids(store, created) == [created.slots[1].id]


@before_reads_or_writes
async def test_control_without_a_key_the_second_of_two_removals_finds_no_slot(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, repository: type, method_name: str
) -> None:
    created = await new_series(store)
    first, second = (state.id for state in created.slots)
    await store.new_booking(second)
    run_before(
        monkeypatch, repository, method_name, lambda: remove(store, created, cancel_booked=True)
    )
    assert await remove(store, created, cancel_booked=True) == SlotNotFound(first)
    assert await stored_ids(store, created) == [second]


@pytest.mark.parametrize("earlier_additions", [0, 1])
async def test_two_requests_for_one_date_add_one_slot(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, earlier_additions: int
) -> None:
    created = await new_series(store)
    for day in range(earlier_additions):
        dates = NewDates(created.series_id, frozenset({START + timedelta(days=day + 2)}))
        assert isinstance(await series_dates.add(store.services, dates, ADA.user_id), DatesAdded)
    run_before(monkeypatch, SlotWriter, "commit", lambda: add_date(store, created))
    added = await add_date(store, created)
    assert isinstance(added, DatesAdded)
    assert (added.slots, len(added.existing)) == ((), 1)
    assert len(await stored_ids(store, created)) == 3 + earlier_additions


async def test_control_without_the_version_of_the_series_the_date_has_two_slots(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await new_series(store)

    def check_nothing(precondition: Any) -> tuple[str, dict[str, Any]]:
        slot_id = ObjectId(precondition.counting_slot_id)
        return "slots", {"q": {"_id": slot_id}, "u": {"$inc": {"seriesVersion": 1}}}

    monkeypatch.setattr(write_set, "version_check", check_nothing)
    run_before(monkeypatch, SlotWriter, "commit", lambda: add_date(store, created))
    assert isinstance(await add_date(store, created), DatesAdded)
    assert len(await stored_ids(store, created)) == 4
