"""Bookings of many callers at once, each in a slot of its own."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.container import Services
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.stores.slots import insert_new_slots

CALLERS = [Caller(UserId(f"{n:024x}"), Role.MEMBER, "session", NOW) for n in range(1, 21)]


@pytest.fixture
async def services(servers: EmbeddedServers) -> AsyncIterator[Services]:
    """Yield the services of a process."""
    url = database_url(servers, "group_bookings")
    async with AsyncExitStack() as stack:
        yield await open_services(stack, url, servers.redis_url, ManualClock(NOW))


async def add_slots(services: Services, count: int = len(CALLERS), **facts: object) -> list[SlotId]:
    """Insert empty slots with one place each and return their ids."""
    slots = [build_slot(1, id=new_slot_id(), **facts) for _ in range(count)]
    await insert_new_slots(services.slot_writer._database, *slots)
    return [slot.id for slot in slots]


async def add_campaign_slots(services: Services, count: int = len(CALLERS)) -> list[SlotId]:
    """Insert slots of a campaign that lets each user book once, and return their ids."""
    terms = build_terms(campaign_id=new_campaign_id(), max_bookings=1)
    return await add_slots(services, count, terms=terms)


async def book_one(
    services: Services, caller: Caller, slot_id: SlotId, key: str | None = None
) -> CommandResult[object]:
    """Book a slot and return the result."""
    return await book_slot(services, caller, slot_id, caller.user_id, BookingOptions(key=key))


async def book_each(
    services: Services,
    slot_ids: Sequence[SlotId],
    callers: Sequence[Caller] = CALLERS,
    key: str | None = None,
) -> list[str]:
    """Book one slot for each caller at once. Return the types of the outcomes or of the errors."""
    results = await asyncio.gather(
        *(
            book_one(services, caller, slot_id, key)
            for caller, slot_id in zip(callers, slot_ids, strict=True)
        ),
        return_exceptions=True,
    )
    return [
        type(result if isinstance(result, BaseException) else result.outcome).__name__
        for result in results
    ]


async def count_bookings(services: Services, slot_ids: Sequence[SlotId]) -> int:
    """Return how many bookings are stored in these slots."""
    rosters = [await services.slots.find_with_roster(slot_id) for slot_id in slot_ids]
    return sum(len(roster.bookings) for roster in rosters if roster is not None)
