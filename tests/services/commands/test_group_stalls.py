"""A short stall of MongoDB delays the bookings of a group, and refuses none of them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.slots import writer
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, updates_of
from slotlock.services.container import Services
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.domain.builders import NOW
from tests.support.model.service_pair import ManualClock, open_services
from tests.support.stores.group_bookings import (
    CALLERS,
    add_campaign_slots,
    book_each,
    count_bookings,
)

# Shorter than an operation may take.
STALL_S = 1.3


@pytest.fixture
def mongo(tmp_path: Path) -> Iterator[RestartableServer]:
    """Yield a mongod that the test may pause."""
    with restartable_server(tmp_path / "mongo", "mongo") as running:
        yield running


@pytest.fixture
async def services(mongo: RestartableServer, servers: EmbeddedServers) -> AsyncIterator[Services]:
    """Yield the services of a process."""
    async with AsyncExitStack() as stack:
        services = await open_services(stack, mongo.url, servers.redis_url, ManualClock(NOW))
        admin = services.slot_writer._database.client.admin
        await admin.command("setParameter", 1, transactionLifetimeLimitSeconds=5)
        yield services


def stall(mongo: RestartableServer) -> None:
    """Suspend the server, and let it continue a little later."""
    mongo.pause()
    asyncio.get_running_loop().call_later(STALL_S, mongo.resume)


async def test_a_stall_before_the_slots_are_written_refuses_no_booking(
    services: Services, mongo: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids = await add_campaign_slots(services)
    stalls = iter([stall])

    def updates_with_stall(changes: WriteSet) -> Iterator[tuple[str, list[Document]]]:
        for name, updates in updates_of(changes):
            if name == "slots":
                for first_stall in stalls:
                    first_stall(mongo)
            yield name, updates

    monkeypatch.setattr(writer, "updates_of", updates_with_stall)
    assert Counter(await book_each(services, slot_ids)) == {"Booked": len(CALLERS)}


async def test_a_stall_before_the_commit_leaves_no_result_unknown(
    services: Services, mongo: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids = await add_campaign_slots(services)
    original_commit, stalls = AsyncClientSession.commit_transaction, iter([stall])

    async def commit_with_stall(self: AsyncClientSession) -> None:
        for first_stall in stalls:
            first_stall(mongo)
        await original_commit(self)

    monkeypatch.setattr(AsyncClientSession, "commit_transaction", commit_with_stall)
    assert Counter(await book_each(services, slot_ids)) == {"Booked": len(CALLERS)}
    assert await count_bookings(services, slot_ids) == len(CALLERS)
