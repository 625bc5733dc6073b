"""Two sets of services on real servers, with one event loop and one manual clock."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from pymongo import MongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.database import Database
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.client import Document, open_database
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS
from slotlock.services.container import Services
from tests.support.apps.processes import database_url
from tests.support.clients.client import Json
from tests.support.model.operations import MORNING
from tests.support.queue.deployment import with_own_redis_database
from tests.support.stores.empty_database import build_indexes, delete_documents

MEMBER_COUNT = 5


@dataclass
class ManualClock:
    """A clock that a test sets for all services."""

    now: datetime = MORNING

    def __call__(self) -> datetime:
        """Return the current time."""
        return self.now

    def advance(self, by: timedelta) -> None:
        """Advance the clock."""
        self.now += by


class PausableAdder(BookingAdder):
    """Adds the bookings of a group after what may be a pause."""

    def __init__(
        self, database: AsyncDatabase[Document], pause: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(database)
        self._pause = pause

    async def add_bookings(self, slot_writes: Sequence[SlotWrite]) -> list[CommitResult]:
        """Write the bookings of a group, after a pause if one was requested."""
        await self._pause()
        return await super().add_bookings(slot_writes)


class PausableSlotWriter(SlotWriter):
    """A slot writer that can pause before a commit."""

    paused_event: asyncio.Event | None = None
    resume_event: asyncio.Event

    def __init__(self, database: AsyncDatabase[Document]) -> None:
        super().__init__(database)
        self.adder = PausableAdder(database, self.pause)

    def pause_next_commit(self) -> asyncio.Event:
        """Let the next commit wait for `resume_event`. Returns an event that is set by then."""
        self.paused_event, self.resume_event = asyncio.Event(), asyncio.Event()
        return self.paused_event

    async def commit(self, changes: WriteSet) -> CommitResult:
        """Commit, after a pause if one was requested."""
        await self.pause()
        return await super().commit(changes)

    async def commit_group(self, changes: WriteSet) -> CommitResult:
        """Commit the changes of a group, after a pause if one was requested."""
        await self.pause()
        return await super().commit_group(changes)

    async def pause(self) -> None:
        """Wait for `resume_event` if a pause was requested."""
        if self.paused_event is not None:
            reached, self.paused_event = self.paused_event, None
            reached.set()
            await self.resume_event.wait()


@dataclass
class ServicePair:
    """Two instances of the services on one database, with direct access to their servers."""

    runner: asyncio.Runner
    clock: ManualClock
    services: list[Services]
    database: "Database[Json]"
    redis: Redis
    callers: list[Caller] = field(default_factory=list)
    emails: dict[str, str] = field(default_factory=dict)

    @property
    def organizer(self) -> Caller:
        """Return the caller who is an organizer."""
        return self.callers[-1]

    @property
    def user_ids(self) -> dict[str, str]:
        """Return the user of each address."""
        return {email: user_id for user_id, email in self.emails.items()}

    def slot_writer(self, service_index: int) -> PausableSlotWriter:
        """Return the slot writer of an instance."""
        writer = self.services[service_index].slot_writer
        assert isinstance(writer, PausableSlotWriter)
        return writer

    def reset(self) -> None:
        """Delete everything but the users."""
        delete_documents(self.database, retained="users")
        self.redis.flushall()
        self.clock.now = MORNING

    def delete_locks(self) -> None:
        """Delete every lock and every queue for one."""
        if keys := list(self.redis.scan_iter("slotlock:{*")):
            self.redis.delete(*keys)


@contextmanager
def open_service_pair(servers: EmbeddedServers, name: str) -> Iterator[ServicePair]:
    """Open two instances of the services on a database of this name."""
    url, clock = database_url(servers, name), ManualClock()
    with (
        asyncio.Runner() as runner,
        MongoClient[Json](url, tz_aware=True, tzinfo=UTC) as client,
        Redis.from_url(servers.redis_url) as redis,
    ):
        stack = AsyncExitStack()
        database = client.get_default_database()
        delete_documents(database)
        try:
            services = [
                runner.run(open_services(stack, url, servers.redis_url, clock)) for _ in range(2)
            ]
            pair = ServicePair(runner, clock, services, database, redis)
            runner.run(_create_callers(pair))
            pair.reset()
            yield pair
        finally:
            runner.run(stack.aclose())


@pytest.fixture(scope="module")
def pair(request: pytest.FixtureRequest, servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Yield two services on a database of the module; with OWN_REDIS, also on a Redis of its own.

    The sweepers of other apps would have the leases of a shared one at times.
    """
    if getattr(request.module, "OWN_REDIS", False):
        servers = with_own_redis_database(servers)
    with open_service_pair(servers, request.module.__name__.rpartition(".")[2]) as opened:
        yield opened


async def open_services(
    exit_stack: AsyncExitStack,
    mongo_url: str,
    redis_url: str,
    clock: ManualClock,
    same_database_url: str = "",
) -> Services:
    """Open services as the application does, with a clock that tests can set.

    Tests can pause their slot writer. The URL of a database behind a route differs each time.
    """
    database = await exit_stack.enter_async_context(open_database(mongo_url))
    redis = redis_client(redis_url)
    pipeline = AutoPipeline(redis, MAX_BUDGET_MS)  # the machine may be busy
    exit_stack.push_async_callback(pipeline.close)
    services = Services(database, redis, pipeline, AdmissionQueue(pipeline), clock)
    services.slot_writer = PausableSlotWriter(database)
    await build_indexes(same_database_url or mongo_url, services.indexes)
    await services.locks.start()
    exit_stack.push_async_callback(services.locks.stop)
    return services


async def _create_callers(pair: ServicePair) -> None:
    for number in range(MEMBER_COUNT + 1):
        role, email = Role.MEMBER, f"{number}@slotlock.test"
        if number == MEMBER_COUNT:
            role = Role.ORGANIZER
        user = await pair.services[0].users.insert("Somebody", email, role, "no password", MORNING)
        assert user is not None
        pair.callers.append(Caller(user.id, role, "session", MORNING))
        pair.emails[user.id] = email
