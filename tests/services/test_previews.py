"""Requests that arrive together are previewed together, and each has the result it has alone."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision, LoadedState
from slotlock.domain.booking.outcomes import BookOutcome
from slotlock.domain.booking.refusals import AlreadyBooked, SlotFull, SlotNotFound
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, book_slot
from slotlock.services.container import Services
from tests.support.domain.builders import build_slot
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    with open_service_pair(with_own_redis_database(servers), "previews") as opened:
        yield opened


@value_object
class PoisonedCommand(BookSlotCommand):
    """A command that cannot be decided."""

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        raise ZeroDivisionError(state, now)


async def insert_slot(services: Services, capacity: int) -> SlotId:
    """Insert a slot with so many places."""
    slot = build_slot(capacity, id=new_slot_id(), start=MORNING.replace(year=2041))
    assert check_written(await services.slot_writer.commit(ChangeSet((), new_slots=(slot,))))
    return slot.id


def test_requests_that_arrive_together_are_one_read_with_a_result_for_each(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, callers = pair.services[0], pair.callers
    reads: list[object] = []
    find_for_update = SlotRepository.find_for_update

    async def count_and_find(self: SlotRepository, *queries: Any) -> LoadedState:
        reads.extend(queries)
        return await find_for_update(self, *queries)

    async def preview_all() -> list[object]:
        open_id, full_id = await insert_slot(services, 5), await insert_slot(services, 1)
        for slot_id in (open_id, full_id):
            user_id = callers[0].user_id
            await book_slot(services, callers[0], slot_id, user_id, BookingOptions())
        monkeypatch.setattr(SlotRepository, "find_for_update", count_and_find)
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
    assert len(reads) == 4


def test_a_request_that_cannot_be_decided_fails_alone(pair: ServicePair) -> None:
    services, caller = pair.services[0], pair.callers[0]

    async def preview_both() -> list[Any]:
        slot_id = await insert_slot(services, 5)
        kinds = (BookSlotCommand, PoisonedCommand, BookSlotCommand)
        commands = [kind.create(caller, slot_id, caller.user_id, False, None) for kind in kinds]
        return await asyncio.gather(
            *map(services.previews.decide, commands), return_exceptions=True
        )

    first, poisoned, last = pair.runner.run(preview_both())
    assert isinstance(poisoned, ZeroDivisionError)
    assert (first, last) == (None, None)
