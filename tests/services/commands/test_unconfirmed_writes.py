"""A write that MongoDB applies and acknowledges too late is never taken for another's write."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.refusals import Locked
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import CommitUnknownError, Database, connect
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import writer
from slotlock.infrastructure.mongo.slots.change_set import CommitResult
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.commands import batches, group_commit
from slotlock.services.container import Services
from tests.support.apps.replica_pair import ReplicaPair, replica_pair
from tests.support.domain.builders import NOW, build_slot
from tests.support.model.service_pair import ManualClock, open_repositories, open_services
from tests.support.polling import eventually
from tests.support.stores.slots import insert_new_slots

ADA = Caller(UserId("a" * 24), Role.MEMBER, "session", NOW)


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaPair]:
    """Yield a replica set whose second member can be paused."""
    with replica_pair(tmp_path_factory.mktemp("replica_pair")) as pair:
        yield pair


@pytest.fixture
async def database(mongo: ReplicaPair) -> AsyncIterator[Database]:
    """Yield a connection that reads the stored documents."""
    client, database = connect(mongo.primary.url)
    try:
        yield database
    finally:
        await client.close()


@pytest.fixture
async def services(servers: EmbeddedServers, mongo: ReplicaPair) -> AsyncIterator[Services]:
    """Yield services on this replica set."""
    async with AsyncExitStack() as stack:
        repositories = await open_repositories(stack, mongo.primary.url)
        yield await open_services(stack, repositories, servers.redis_url, ManualClock(NOW))


async def has_booking(database: Database, slot_id: SlotId) -> bool:
    """Return whether the booking is there now that writes are acknowledged again."""
    document = await database["slots"].find_one({"_id": ObjectId(slot_id)})
    assert document is not None
    return bool(document["bookings"])


@pytest.mark.parametrize("key", [None, "a key"])
async def test_a_booking_that_is_acknowledged_too_late_never_ends_as_locked(
    services: Services, database: Database, mongo: ReplicaPair, key: str | None
) -> None:
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    mongo.secondary.pause()
    try:
        with pytest.raises(CommitUnknownError):
            await book_slot(services, ADA, new.id, ADA.user_id, BookingOptions(key=key))
    finally:
        mongo.secondary.resume()
    await eventually(lambda: has_booking(database, new.id), "the booking is there all the same")


async def test_control_unknown_taken_for_a_conflict_ends_as_locked_with_a_booking(
    services: Services, database: Database, mongo: ReplicaPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (batches, group_commit):
        monkeypatch.setattr(module, "check_written", lambda result: result is CommitResult.WRITTEN)
    monkeypatch.setattr(writer, "SETTLE_TIMEOUT_S", 0.1)
    new = build_slot(1, id=new_slot_id())
    await insert_new_slots(database, new)
    mongo.secondary.pause()
    try:
        result = await book_slot(services, ADA, new.id, ADA.user_id, BookingOptions())
    finally:
        mongo.secondary.resume()
    assert isinstance(result.outcome, Locked)
    await eventually(lambda: has_booking(database, new.id), "the booking is there all the same")
