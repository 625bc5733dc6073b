"""Wiring: connections, repositories, services and the background tasks of a process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from slotlock.api.endpoints.health import HealthEndpoints
from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.traces import run_tracing
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import LoginThrottle
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.infrastructure.mongo.client import Database, MongoHealth, connect
from slotlock.infrastructure.mongo.clock import MongoClock, mongo_clock
from slotlock.infrastructure.mongo.repositories import Repositories, repositories_on
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import RedisClient, redis_client
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.rate_limits import RateLimiter
from slotlock.infrastructure.redis.session_events import SessionEventBus
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.container import Services, build_services
from slotlock.services.workers.admission_worker import ADMISSION_LEASE_TTL_MS, admission_worker


@dataclass(frozen=True, slots=True)
class Backend:
    """The services and the connections behind them."""

    services: Services
    repositories: Repositories
    database: Database
    redis: RedisClient
    pipeline: AutoPipeline
    clock: MongoClock


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Connect to the servers and build the services. Redis may be unavailable."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_tracing())
        client, database = connect(settings.mongo_url or "")
        stack.push_async_callback(client.close)
        clock = await stack.enter_async_context(mongo_clock(database, settings.max_clock_skew_s))
        redis = redis_client(settings.redis_url or "")
        pipeline = AutoPipeline(redis, settings.redis_budget_ms)
        stack.push_async_callback(pipeline.close)
        repositories = repositories_on(database)
        await repositories.indexes.create_on_empty()
        await stack.enter_async_context(repositories.indexes.running())
        queue = AdmissionQueue(pipeline, settings.queue_partitions, settings.queue_length)
        services = build_services(repositories, redis, pipeline, queue, clock.now)
        await pipeline.check()
        await services.locks.start()
        stack.push_async_callback(services.locks.stop)
        yield Backend(services, repositories, database, redis, pipeline, clock)


def health_endpoints(backend: Backend) -> HealthEndpoints:
    """Build the endpoints for monitoring systems."""
    return HealthEndpoints(
        MongoHealth(backend.database),
        backend.clock,
        backend.pipeline,
        backend.services.admission_queue,
    )


def login_throttle(settings: Settings, pipeline: AutoPipeline) -> LoginThrottle:
    """Build the limits on password guesses, which no setting turns off."""
    key = settings.secret_key[0].get_secret_value().encode()
    return LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), key)


def rate_limits(settings: Settings, pipeline: AutoPipeline) -> OperationRateLimits:
    """Build the rate limits of operations from the settings."""
    return OperationRateLimits(
        RateLimiter(pipeline) if settings.rate_limits else None,
        settings.rate_reads,
        settings.rate_writes,
        settings.rate_users_per_address,
    )


@asynccontextmanager
async def run_live_hubs(services: Services) -> AsyncIterator[None]:
    """Run the hubs that deliver live updates to the subscriptions of this process."""
    async with AsyncExitStack() as stack:
        services.slot_events.start()
        stack.push_async_callback(services.slot_events.stop)
        await services.change_feed.start(services.slot_events)
        stack.push_async_callback(services.change_feed.stop)
        services.availability.start(services.slot_events, services.change_feed)
        stack.push_async_callback(services.availability.stop)
        services.booking_events.start(services.slot_events, services.change_feed)
        stack.push_async_callback(services.booking_events.stop)
        services.waitlist_positions.start(services.change_feed)
        stack.push_async_callback(services.waitlist_positions.stop)
        services.ticket_updates.start(
            services.slot_events, services.admission_queue, partial(load_tickets, services)
        )
        stack.push_async_callback(services.ticket_updates.stop)
        yield


@asynccontextmanager
async def run_session_streams(backend: Backend, auth: Auth) -> AsyncIterator[None]:
    """End streams of this process when their sessions end, in this process or another one."""
    session_events = SessionEventBus(
        backend.redis, backend.pipeline, on_session_changed=auth.session_streams.recheck
    )
    session_events.start()
    feed = backend.services.change_feed
    auth.session_streams.start(auth.sessions, session_events.publish, feed)
    try:
        yield
    finally:
        await auth.session_streams.stop()
        await session_events.stop()


@asynccontextmanager
async def run_admission_workers(backend: Backend) -> AsyncIterator[None]:
    """Serve the partitions of the admission queue for which this process gets the lease."""
    lease_locks = Locks(backend.pipeline, ttl_ms=ADMISSION_LEASE_TTL_MS, record_metrics=False)
    await lease_locks.start()
    try:
        async with admission_worker(backend.services, lease_locks):
            yield
    finally:
        await lease_locks.stop()
