"""The desk and its stores, wired for as long as a process lives, with or without an endpoint."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from slotlock.api.settings.settings import Settings
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import LoginThrottle
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecords
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.resources import ResourceRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.write_probe import WriteProbe
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient, redis_client
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.rate_limits import RateLimiter
from slotlock.infrastructure.redis.session_events import SessionEventBus
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.container import Services, utc_now
from slotlock.services.live.availability import AvailabilityHub
from slotlock.services.live.booking_events import BookingEventHub
from slotlock.services.live.ticket_updates import TicketHub
from slotlock.services.wait_queue import WaitQueues
from slotlock.services.workers.admission_worker import ADMISSION_LEASE_TTL_MS, admission_worker


@dataclass(frozen=True, slots=True)
class Backend:
    """A desk with what is behind it."""

    services: Services
    database: Database
    redis: RedisClient
    pipeline: AutoPipeline


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Open the stores and set up the desk; a Redis that is away is no error."""
    async with AsyncExitStack() as closing:
        client, database = connect(settings.mongo_url or "")
        closing.push_async_callback(client.close)
        redis = redis_client(settings.redis_url or "")
        line = AutoPipeline(redis)
        closing.push_async_callback(line.close)
        slots, locks = SlotRepository(database), Locks(line)
        board, personal = AvailabilityHub(slots, utc_now), BookingEventHub(slots, utc_now)
        tickets = TicketHub()
        desk = Services(
            slots=slots,
            slot_writer=SlotWriter(database),
            idempotency_records=IdempotencyRecords(database),
            users=UserRepository(database),
            teams=TeamRepository(database),
            campaigns=CampaignRepository(database),
            resources=ResourceRepository(database),
            write_probe=WriteProbe(database),
            locks=locks,
            wait_queues=WaitQueues(locks),
            admission_queue=AdmissionQueue(line, settings.queue_partitions, settings.queue_length),
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
        )
        for store in (slots, desk.idempotency_records, desk.users, desk.teams, desk.campaigns):
            await store.create_indexes()
        await line.check()
        await desk.locks.start()
        closing.push_async_callback(desk.locks.stop)
        yield Backend(desk, database, redis, line)


def login_throttle(settings: Settings, pipeline: AutoPipeline) -> LoginThrottle:
    """The limits on signing in, which hold whether or not rates are limited."""
    key = settings.secret_key[0].get_secret_value().encode()
    return LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), key)


def rate_limits(settings: Settings, pipeline: AutoPipeline) -> OperationRateLimits:
    """The rate limits that the settings want."""
    return OperationRateLimits(
        RateLimiter(pipeline) if settings.rate_limits else None,
        settings.rate_reads,
        settings.rate_writes,
        settings.rate_users_per_address,
    )


@asynccontextmanager
async def run_live_hubs(services: Services) -> AsyncIterator[None]:
    """Keep the notice boards up to date for those who watch in this process."""
    async with AsyncExitStack() as closing:
        services.slot_events.start()
        closing.push_async_callback(services.slot_events.stop)
        services.availability.start(services.slot_events)
        closing.push_async_callback(services.availability.stop)
        services.booking_events.start(services.slot_events)
        closing.push_async_callback(services.booking_events.stop)
        services.ticket_updates.start(
            services.slot_events, services.admission_queue, partial(load_tickets, services)
        )
        closing.push_async_callback(services.ticket_updates.stop)
        yield


@asynccontextmanager
async def run_session_streams(backend: Backend, auth: Auth) -> AsyncIterator[None]:
    """End the streams that are open in this process when their sessions end, wherever they do."""
    sign_outs = SessionEventBus(
        backend.redis, backend.pipeline, on_session_changed=auth.session_streams.recheck
    )
    sign_outs.start()
    auth.session_streams.start(auth.sessions, sign_outs.publish)
    try:
        yield
    finally:
        await auth.session_streams.stop()
        await sign_outs.stop()


@asynccontextmanager
async def run_admission_workers(backend: Backend) -> AsyncIterator[None]:
    """Serve the admission queue, in turn with the other processes that do."""
    turns = Locks(backend.pipeline, ttl_ms=ADMISSION_LEASE_TTL_MS, record_metrics=False)
    await turns.start()
    try:
        async with admission_worker(backend.services, turns):
            yield
    finally:
        await turns.stop()
