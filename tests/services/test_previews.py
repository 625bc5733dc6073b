"""Requests that arrive together are previewed together, and each has the result it has alone."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import BookOutcome
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    LimitReached,
    SlotFull,
    SlotNotFound,
)
from slotlock.domain.booking.decision import Decision, LoadedState
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, book_slot
from slotlock.services.container import Services
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database
from tests.support.stores.slots import insert_slot


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    with open_service_pair(with_own_redis_database(servers), "previews") as opened:
        yield opened


@value_object
class PoisonedCommand(BookSlotCommand):
    """A command that cannot be decided."""

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        raise ZeroDivisionError(state, now)

    preview = apply


async def add_slot(services: Services, capacity: int, choice_group: str | None = None) -> SlotId:
    """Insert a slot with so many places."""
    start = MORNING.replace(year=2041)
    return await insert_slot(services, capacity, start=start, choice_group=choice_group)


def test_requests_that_arrive_together_are_one_read_with_a_result_for_each(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, callers = pair.services[0], pair.callers
    reads: list[list[SlotId]] = []
    find_each_for_update = SlotRepository.find_each_for_update

    async def count_and_find(self: SlotRepository, queries: Any) -> Any:
        reads.append([query.slot_id for query in queries])
        return await find_each_for_update(self, queries)

    async def preview_all() -> list[object]:
        open_id, full_id = await add_slot(services, 5), await add_slot(services, 1)
        for slot_id in (open_id, full_id):
            user_id = callers[0].user_id
            await book_slot(services, callers[0], slot_id, user_id, BookingOptions())
        monkeypatch.setattr(SlotRepository, "find_each_for_update", count_and_find)
        commands = [
            BookSlotCommand.create(caller, slot_id, caller.user_id, False, None)
            for caller in callers[:2]
            for slot_id in (open_id, full_id, new_slot_id())
        ]
        results = await asyncio.gather(*map(services.previews.decide, commands))
        return [result and type(result.outcome) for result in results]

    assert pair.runner.run(preview_all()) == [
        *(AlreadyBooked, AlreadyBooked, SlotNotFound),
        *(None, SlotFull, SlotNotFound),  # None: the booking needs a write
    ]
    # The open slot, the full slot, and two slots that do not exist.
    assert [len(set(slot_ids)) for slot_ids in reads] == [4]


def test_a_request_that_cannot_be_decided_fails_alone(pair: ServicePair) -> None:
    services, caller = pair.services[0], pair.callers[0]

    async def preview_both() -> list[Any]:
        slot_id = await add_slot(services, 5)
        kinds = (BookSlotCommand, PoisonedCommand, BookSlotCommand)
        commands = [kind.create(caller, slot_id, caller.user_id, False, None) for kind in kinds]
        return await asyncio.gather(
            *map(services.previews.decide, commands), return_exceptions=True
        )

    first, poisoned, last = pair.runner.run(preview_both())
    assert isinstance(poisoned, ZeroDivisionError)
    assert (first, last) == (None, None)


def test_a_slot_that_cannot_be_read_fails_its_own_callers_only(pair: ServicePair) -> None:
    services, callers = pair.services[0], pair.callers[:2]

    async def preview_each_slot() -> list[Any]:
        damaged_id, open_id = await add_slot(services, 5), await add_slot(services, 5)
        damage = {"$unset": {"title": ""}}
        pair.database["slots"].update_one({"_id": ObjectId(damaged_id)}, damage)
        commands = [
            BookSlotCommand.create(caller, slot_id, caller.user_id, False, None)
            for caller in callers
            for slot_id in (damaged_id, open_id, new_slot_id())
        ]
        previews = map(services.previews.decide, commands)
        return await asyncio.gather(*previews, return_exceptions=True)

    for damaged, open_, missing in chunked(pair.runner.run(preview_each_slot()), 3):
        assert isinstance(damaged, KeyError)
        assert open_ is None
        assert isinstance(missing.outcome, SlotNotFound)


def test_requests_that_depend_on_other_bookings_are_previewed_with_the_rest(
    pair: ServicePair,
) -> None:
    services, caller = pair.services[0], pair.callers[0]

    async def preview_all() -> list[object]:
        booked_id, choice_id = [await add_slot(services, 5, "room") for _ in range(2)]
        open_id = await add_slot(services, 5)
        await book_slot(services, caller, booked_id, caller.user_id, BookingOptions())
        commands = [
            BookSlotCommand.create(each, slot_id, each.user_id, False, None)
            for each in (caller, pair.callers[1])
            for slot_id in (choice_id, open_id)
        ]
        results = await asyncio.gather(*map(services.previews.decide, commands))
        return [result and type(result.outcome) for result in results]

    assert pair.runner.run(preview_all()) == [LimitReached, None, None, None]
