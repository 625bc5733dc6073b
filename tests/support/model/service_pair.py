"""Two desks on real servers, in one event loop that a test owns, with a clock that it can move."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pymongo import MongoClient
from pymongo.database import Database
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecords
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, CommitResult
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.resources import ResourceRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.write_probe import WriteProbe
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.services.container import Services
from slotlock.services.live.availability import AvailabilityHub
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from slotlock.services.wait_queue import WaitQueues
from tests.support.apps.processes import database_url
from tests.support.clients.client import Json
from tests.support.model.operations import MORNING

MEMBER_COUNT = 5
CLEARED_COLLECTIONS = (
    "slots",
    "ended_bookings",
    "ended_waitlist_entries",
    "user_versions",
    "campaigns",
    "resources",
    "idempotency_records",
    "teams",
)


@dataclass
class ManualClock:
    """The time at every desk."""

    now: datetime = MORNING

    def __call__(self) -> datetime:
        """What it shows."""
        return self.now

    def advance(self, by: timedelta) -> None:
        """Move it on."""
        self.now += by


class PausableSlotWriter(SlotWriter):
    """Writes that can be made to wait just before they are sent."""

    paused_event: asyncio.Event | None = None
    resume_event: asyncio.Event

    def pause_next_commit(self) -> asyncio.Event:
        """Let the next write wait for `go`; the event tells when it does."""
        self.paused_event, self.resume_event = asyncio.Event(), asyncio.Event()
        return self.paused_event

    async def commit(self, changes: ChangeSet) -> CommitResult:
        """Write, perhaps late."""
        if self.paused_event is not None:
            reached, self.paused_event = self.paused_event, None
            reached.set()
            await self.resume_event.wait()
        return await super().commit(changes)


@dataclass
class ServicePair:
    """The desks, what is behind them as seen from outside, and the people."""

    runner: asyncio.Runner
    clock: ManualClock
    services: list[Services]
    database: "Database[Json]"
    redis: Redis
    callers: list[Caller] = field(default_factory=list)
    emails: dict[str, str] = field(default_factory=dict)

    @property
    def organizer(self) -> Caller:
        """The one who keeps the slots."""
        return self.callers[-1]

    def slot_writer(self, service_index: int) -> PausableSlotWriter:
        """The writes of a desk."""
        writes = self.services[service_index].slot_writer
        assert isinstance(writes, PausableSlotWriter)
        return writes

    def reset(self) -> None:
        """Forget everything but the people."""
        for name in CLEARED_COLLECTIONS:
            self.database[name].delete_many({})
        self.redis.flushall()
        self.clock.now = MORNING

    def delete_locks(self) -> None:
        """Let every lock and every queue in front of one run out."""
        if keys := list(self.redis.scan_iter("slotlock:{*")):
            self.redis.delete(*keys)


@contextmanager
def open_service_pair(servers: EmbeddedServers, name: str) -> Iterator[ServicePair]:
    """Two desks wired as the lifespan wires one, on a database of this name."""
    url, clock = database_url(servers, name), ManualClock()
    with (
        asyncio.Runner() as runner,
        MongoClient[Json](url, tz_aware=True, tzinfo=UTC) as client,
        Redis.from_url(servers.redis_url) as redis,
    ):
        closing = AsyncExitStack()
        truth = client.get_default_database()
        client.drop_database(truth.name)
        try:
            desks = [
                runner.run(open_services(closing, url, servers.redis_url, clock)) for _ in range(2)
            ]
            house = ServicePair(runner, clock, desks, truth, redis)
            runner.run(_create_callers(house))
            house.reset()
            yield house
        finally:
            runner.run(closing.aclose())


async def open_services(
    exit_stack: AsyncExitStack, mongo_url: str, redis_url: str, clock: ManualClock
) -> Services:
    client, database = connect(mongo_url)
    exit_stack.push_async_callback(client.close)
    redis = redis_client(redis_url)
    line = AutoPipeline(redis)
    exit_stack.push_async_callback(line.close)
    slots, locks = SlotRepository(database), Locks(line)
    board, personal = AvailabilityHub(slots, clock), BookingEventHub(slots, clock)
    tickets = TicketHub()
    desk = Services(
        slots=slots,
        slot_writer=PausableSlotWriter(database),
        idempotency_records=IdempotencyRecords(database),
        users=UserRepository(database),
        teams=TeamRepository(database),
        campaigns=CampaignRepository(database),
        resources=ResourceRepository(database),
        write_probe=WriteProbe(database),
        locks=locks,
        wait_queues=WaitQueues(locks),
        admission_queue=AdmissionQueue(line),
        availability=board,
        booking_events=personal,
        ticket_updates=tickets,
        slot_events=SlotEventBus(
            redis,
            line,
            on_availability=board.publish,
            on_booking_changed=personal.notify,
            on_queue_advanced=tickets.on_queue_advanced,
        ),
        now=clock,
    )
    for store in (desk.slots, desk.idempotency_records, desk.users, desk.teams, desk.campaigns):
        await store.create_indexes()
    await locks.start()
    exit_stack.push_async_callback(locks.stop)
    return desk


async def _create_callers(pair: ServicePair) -> None:
    for number in range(MEMBER_COUNT + 1):
        role, email = Role.MEMBER, f"{number}@slotlock.test"
        if number == MEMBER_COUNT:
            role = Role.ORGANIZER
        user = await pair.services[0].users.insert("Somebody", email, role, "no password", MORNING)
        assert user is not None
        pair.callers.append(Caller(user.id, role, "session", MORNING))
        pair.emails[user.id] = email
