"""Wiring: connections, repositories, services and the background tasks of a process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from slotlock.api.endpoints.health import HealthEndpoints
from slotlock.api.listener import base_url
from slotlock.api.settings.settings import Settings, SettingsError, env_name
from slotlock.api.telemetry.traces import run_tracing
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import LoginThrottle
from slotlock.auth.mails.mail_throttle import MailThrottle
from slotlock.auth.providers.provider import Provider
from slotlock.auth.tokens import TokenSigner, unsubscribe_token
from slotlock.domain.notifications.outbox import Channel
from slotlock.domain.notifications.quiet_hours import QuietHours, parse_quiet_hours
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site.site import SiteValues
from slotlock.domain.users.user import MailTopic, UserId
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.infrastructure.mongo.client import Database, MongoHealth, open_database
from slotlock.infrastructure.mongo.clock import MongoClock, mongo_clock
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.paces import Paces
from slotlock.infrastructure.redis.rate_limits import RateLimiter
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.container import Services
from slotlock.services.workers.admission_worker import admission_worker

if TYPE_CHECKING:
    from slotlock.services.notifications.outbox_reader import Producer

# The time after which another process replaces a worker that died.
WORKER_LEASE_TTL_MS = 2_000


@value_object
class Backend:
    """The services and the connections behind them."""

    services: Services
    database: Database
    pipeline: AutoPipeline
    clock: MongoClock


@asynccontextmanager
async def open_backend(settings: Settings) -> AsyncIterator[Backend]:
    """Connect to the servers and build the services. Redis may be unavailable."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(run_tracing())
        database = await stack.enter_async_context(open_database(settings.mongo_url or ""))
        clock = await stack.enter_async_context(mongo_clock(database, settings.max_clock_skew_s))
        redis = redis_client(settings.redis_url or "")
        pipeline = AutoPipeline(redis, settings.redis_budget_ms)
        stack.push_async_callback(pipeline.close)
        queue = AdmissionQueue(pipeline, settings.queue_partitions, settings.queue_length)
        services = Services(
            database,
            redis,
            pipeline,
            queue,
            clock.now,
            require_verified_email=settings.require_verified_email,
            sends_mail=settings.smtp_url is not None,
            # What mails say of the site; a server says more.
            site=SiteValues(
                name=settings.site_name,
                locale=settings.locale or "",
                time_zone=settings.time_zone,
            ),
        )
        await services.indexes.create_on_empty()
        await stack.enter_async_context(services.indexes.running())
        await pipeline.check()
        await services.locks.start()
        stack.push_async_callback(services.locks.stop)
        yield Backend(services, database, pipeline, clock)


def health_endpoints(backend: Backend) -> HealthEndpoints:
    """Build the endpoints for monitoring systems."""
    return HealthEndpoints(
        MongoHealth(backend.database),
        backend.clock,
        backend.pipeline,
        backend.services.admission_queue,
        backend.services.outbox,
    )


def throttles(settings: Settings, pipeline: AutoPipeline) -> tuple[LoginThrottle, MailThrottle]:
    """Build the limits on password guesses and account mails, which no setting turns off."""
    key = settings.secret_key[0].get_secret_value().encode()
    logins = LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), key)
    return logins, MailThrottle(logins, Paces(pipeline))


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
        services.campaign_slots.start(services.change_feed)
        stack.push_async_callback(services.campaign_slots.stop)
        services.campaign_changes.start(services.change_feed)
        stack.push_async_callback(services.campaign_changes.stop)
        services.live_statistics.start(services.change_feed)
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
    services = backend.services
    slot_events, streams = services.slot_events, auth.session_streams
    slot_events.on_session_changed = streams.recheck
    sessions = auth.repositories.sessions
    streams.start(sessions, slot_events.publish_session_changed, services.change_feed)
    try:
        yield
    finally:
        await streams.stop()


@asynccontextmanager
async def run_workers(
    backend: Backend, settings: Settings, *, development: bool = False
) -> AsyncIterator[None]:
    """Serve the admission queue and the outbox as far as this process gets the leases."""
    lease_locks = Locks(backend.pipeline, ttl_ms=WORKER_LEASE_TTL_MS, record_metrics=False)
    await lease_locks.start()
    try:
        async with (
            admission_worker(backend.services, lease_locks),
            _run_outbox(backend, settings, lease_locks, development=development),
        ):
            yield
    finally:
        await lease_locks.stop()


def board_url(settings: Settings, *, development: bool = False) -> str | None:
    """Return the address of the board; None without one, or if no setting says what it is."""
    address = settings.public_url or (base_url(settings) if development else None)
    return f"{address}/board" if address and settings.board else None


def sign_in_providers(settings: Settings, *, development: bool = False) -> tuple[Provider, ...]:
    """Return the providers at which users sign in.

    Raises:
        SettingsError: a provider cannot send users anywhere, or the file changed and is invalid.
    """
    if settings.providers is None:
        return ()
    from slotlock.api.settings.providers import read_providers

    try:
        providers = read_providers(settings.providers)
    except ValueError as error:
        raise SettingsError(f"{env_name('providers')}: {error}") from None
    for each in providers:
        if not each.redirect_uris and board_url(settings, development=development) is None:
            raise SettingsError(
                f"{env_name('providers')}: provider {each.id}: redirect_uris: needs an address, "
                "unless there are the board and SLOTLOCK_PUBLIC_URL"
            )
    return providers


def _unsubscribe_url(settings: Settings, user_id: UserId, topic: MailTopic) -> str:
    token = unsubscribe_token(token_signer(settings), user_id, topic)
    return f"{settings.public_url}/unsubscribe/{token}"


def token_signer(settings: Settings) -> TokenSigner:
    """Build what signs and verifies tokens."""
    return TokenSigner([key.get_secret_value() for key in settings.secret_key])


def quiet_hours(settings: Settings) -> QuietHours | None:
    """Return the hours in which nobody gets reminders; None without them."""
    text = settings.mail_quiet_hours
    return parse_quiet_hours(text, ZoneInfo(settings.time_zone)) if text else None


@asynccontextmanager
async def _run_outbox(
    backend: Backend, settings: Settings, lease_locks: Locks, *, development: bool
) -> AsyncIterator[None]:
    """Go on with draws, fill the outbox and send what it has, together with other processes."""
    # Most commands send nothing.
    from slotlock.infrastructure.webhooks.webhook_client import open_webhook_client
    from slotlock.services.notifications.outbox_reader import outbox_reader
    from slotlock.services.notifications.outbox_sender import sending
    from slotlock.services.notifications.webhook_sender import WebhookSender
    from slotlock.services.workers.draw_worker import draw_worker

    services = backend.services
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            open_webhook_client(allow_private=settings.webhook_private_addresses)
        )
        await stack.enter_async_context(sending(WebhookSender(services, client)))
        producers = await _run_mail(backend, settings, stack, development=development)
        await stack.enter_async_context(draw_worker(services, lease_locks))
        await stack.enter_async_context(outbox_reader(services, lease_locks, Channel.WEBHOOK))
        if producers:
            await stack.enter_async_context(
                outbox_reader(services, lease_locks, Channel.MAIL, producers)
            )
            from slotlock.services.notifications.scheduled_mails import mail_schedule

            quiet = quiet_hours(settings)
            await stack.enter_async_context(mail_schedule(services, lease_locks, quiet))
        yield


async def _run_mail(
    backend: Backend, settings: Settings, stack: AsyncExitStack, *, development: bool
) -> "Sequence[Producer]":
    """Send the mails of the outbox until the stack is closed, and return what fills it with them.

    That is nothing while mail is off.
    """
    if settings.smtp_url is None or settings.mail_from is None:
        return ()
    # They import a template engine and a mail client.
    from slotlock.domain.notifications.mail_kinds import mails_about
    from slotlock.infrastructure.mail.addresses import parse_sender
    from slotlock.services.notifications.mailer import MailRate, MailSite, open_mailer
    from slotlock.services.notifications.outbox_sender import outbox_sender

    mailer = await stack.enter_async_context(
        open_mailer(
            backend.services,
            settings.smtp_url.get_secret_value(),
            parse_sender(settings.mail_from, settings.mail_reply_to),
            MailSite(
                board_url(settings, development=development) or "",
                quiet_hours(settings),
                # A worker may lack both: it sends the mails without these links.
                partial(_unsubscribe_url, settings)
                if settings.public_url and settings.secret_key
                else None,
            ),
        )
    )
    rate = MailRate(backend.pipeline, settings.mail_rate)
    await stack.enter_async_context(
        outbox_sender(backend.services, Channel.MAIL, mailer.deliver, rate.wait)
    )
    return [mails_about]
