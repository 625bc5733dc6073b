"""Bookings in different slots that come together share one read, one write and one release."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import BookOutcome
from slotlock.domain.booking.decision import Decision, LoadedState
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite
from slotlock.services.booking.book import BookSlotCommand
from slotlock.services.commands import group_commit
from slotlock.services.container import Services
from tests.support.stores.group_bookings import CALLERS, add_slots, book_each, book_one, services

POISONED = CALLERS[7]

__all__ = ["services"]


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many bookings each write has, in a list that grows."""
    sizes: list[int] = []
    original_update_each = BookingAdder._update_each

    async def record(self: BookingAdder, updates: Sequence[Document]) -> Document:
        sizes.append(len(updates))
        return await original_update_each(self, updates)

    monkeypatch.setattr(BookingAdder, "_update_each", record)
    return sizes


async def book(services: Services, caller: Caller, slot_id: SlotId) -> str:
    """Book a slot and return the type of the outcome."""
    return type((await book_one(services, caller, slot_id)).outcome).__name__


async def booked_users(services: Services, slot_ids: Sequence[SlotId]) -> list[UserId | None]:
    """Return who has booked each slot, as it is stored."""
    rosters = [await services.slots.find_with_roster(slot_id) for slot_id in slot_ids]
    return [
        roster.bookings[0].user_id if roster and roster.bookings else None for roster in rosters
    ]


def users_without(*absent: Caller) -> list[UserId | None]:
    """Return the users of all callers, with None for these."""
    return [None if caller in absent else caller.user_id for caller in CALLERS]


async def test_bookings_in_different_slots_are_one_write(
    services: Services, writes: list[int]
) -> None:
    slot_ids = await add_slots(services)
    assert await book_each(services, slot_ids) == ["Booked"] * len(CALLERS)
    assert writes == [len(CALLERS)]
    assert await booked_users(services, slot_ids) == users_without()


async def test_a_booking_that_comes_when_a_group_has_just_ended_is_served(
    services: Services,
) -> None:
    for caller, slot_id in zip(CALLERS, await add_slots(services), strict=True):
        assert await book(services, caller, slot_id) == "Booked"


async def test_a_taken_slot_refuses_its_caller_only(services: Services) -> None:
    slot_ids = await add_slots(services)
    assert await book(services, CALLERS[0], slot_ids[1]) == "Booked"
    outcomes = await book_each(services, slot_ids)
    assert outcomes == ["Booked", "SlotFull", *["Booked"] * (len(CALLERS) - 2)]


def poison_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rules raise an error for one of the callers."""
    original_apply = BookSlotCommand.apply

    def apply(self: BookSlotCommand, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        if self.caller == POISONED:
            raise ZeroDivisionError
        return original_apply(self, state, now)

    monkeypatch.setattr(BookSlotCommand, "apply", apply)


async def test_a_command_that_fails_leaves_its_neighbors_unharmed(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison_one_command(monkeypatch)
    slot_ids = await add_slots(services)
    outcomes = await book_each(services, slot_ids)
    assert outcomes.pop(CALLERS.index(POISONED)) == "ZeroDivisionError"
    assert outcomes == ["Booked"] * (len(CALLERS) - 1)
    assert await booked_users(services, slot_ids) == users_without(POISONED)


async def test_control_if_no_batch_is_served_alone_a_command_that_fails_fails_all(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "is_unavailable", lambda _: True)
    poison_one_command(monkeypatch)
    outcomes = await book_each(services, await add_slots(services))
    assert outcomes == ["ZeroDivisionError"] * len(CALLERS)


async def test_a_group_that_fails_leaves_no_lock(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(_self: SlotRepository, _queries: Sequence[SlotQuery]) -> None:
        raise AutoReconnect

    monkeypatch.setattr(SlotRepository, "find_each_for_update", find)
    slot_ids = await add_slots(services)
    assert await book_each(services, slot_ids) == ["AutoReconnect"] * len(CALLERS)
    await services.locks.wait_for_releases()
    assert [id_ for id_ in slot_ids if await services.locks.is_held(id_)] == []


async def test_a_slot_that_cannot_be_read_fails_its_own_caller_only(services: Services) -> None:
    slot_ids = await add_slots(services)
    by_id = {"_id": ObjectId(slot_ids[5])}
    await services.slot_writer._slots.update_one(by_id, {"$unset": {"title": ""}})
    outcomes = await book_each(services, slot_ids)
    assert outcomes.pop(5) in {"TypeError", "KeyError"}
    assert outcomes == ["Booked"] * (len(CALLERS) - 1)


async def test_a_slot_that_another_writer_changed_is_decided_again(
    services: Services, monkeypatch: pytest.MonkeyPatch, writes: list[int]
) -> None:
    slot_ids = await add_slots(services)
    original_find = SlotRepository.find_each_for_update

    async def find_stale(
        self: SlotRepository, queries: Sequence[SlotQuery]
    ) -> Mapping[SlotId, SlotState | Exception]:
        found = dict(await original_find(self, queries))
        state = found[slot_ids[3]]
        assert isinstance(state, SlotState)
        return {**found, slot_ids[3]: replace(state, version=state.version - 1)}

    monkeypatch.setattr(SlotRepository, "find_each_for_update", find_stale)
    assert await book_each(services, slot_ids) == ["Booked"] * len(CALLERS)
    assert writes == [len(CALLERS), 1]
    assert await booked_users(services, slot_ids) == users_without()


async def test_a_group_that_takes_long_does_not_delay_the_next(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids = await add_slots(services, 3)
    reached, resume = asyncio.Event(), asyncio.Event()
    original_add = BookingAdder.add_bookings

    async def add_late(self: BookingAdder, slot_writes: Sequence[SlotWrite]) -> list[CommitResult]:
        if slot_writes[0].before.id == slot_ids[0]:
            reached.set()
            await resume.wait()
        return await original_add(self, slot_writes)

    monkeypatch.setattr(BookingAdder, "add_bookings", add_late)
    slow = asyncio.create_task(book(services, CALLERS[0], slot_ids[0]))
    await reached.wait()
    # Two callers, one after the other: one when the group becomes slow, and one while it is.
    for caller, slot_id in zip(CALLERS[1:3], slot_ids[1:], strict=True):
        assert await book(services, caller, slot_id) == "Booked"
    assert not slow.done()
    resume.set()
    assert await slow == "Booked"


async def test_callers_who_are_cancelled_leave_the_others_unharmed(services: Services) -> None:
    slot_ids = await add_slots(services)
    tasks = [
        asyncio.create_task(book(services, caller, slot_id))
        for caller, slot_id in zip(CALLERS, slot_ids, strict=True)
    ]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[1::2] == ["Booked"] * (len(CALLERS) // 2)
    await services.locks.wait_for_releases()
    assert not services.caller_queues._queues
