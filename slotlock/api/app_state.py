"""The state that the lifespan of the application opens and every endpoint works with."""

import logging
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import passlib.handlers.argon2  # noqa: F401 - a command imports it at the first use, a server before

from slotlock.api.backend import (
    board_url,
    health_endpoints,
    open_backend,
    rate_limits,
    run_live_hubs,
    run_session_streams,
    run_workers,
    sign_in_providers,
    throttles,
    token_signer,
)
from slotlock.api.board.documents import board_documents
from slotlock.api.calendars.calendar_endpoint import Calendars, calendars_endpoint
from slotlock.api.endpoints.back_channel_endpoint import back_channel_endpoint
from slotlock.api.endpoints.check_in_frame_endpoint import check_in_frame_endpoint
from slotlock.api.endpoints.endpoint import Endpoint
from slotlock.api.endpoints.health import HealthEndpoints
from slotlock.api.endpoints.personal_data_endpoint import personal_data_endpoint
from slotlock.api.endpoints.unsubscribe_endpoint import unsubscribe_endpoint
from slotlock.api.endpoints.user_file_endpoints import import_endpoint, invitations_endpoint
from slotlock.api.exports.draw_record_endpoint import draw_record_endpoint
from slotlock.api.exports.export_builder import ExportBuilder
from slotlock.api.exports.export_endpoint import (
    Exports,
    export_links_endpoint,
    exports_endpoint,
)
from slotlock.api.exports.letters_endpoint import Letters, letters_endpoint
from slotlock.api.first_admin import create_admin
from slotlock.api.server.graceful_shutdown import graceful_shutdown
from slotlock.api.settings.addresses import origins_pattern
from slotlock.api.settings.settings import Settings, SettingsError, env_name
from slotlock.api.slot_files.import_endpoint import slot_import_endpoint
from slotlock.auth.container import Auth
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.providers.connections import open_sign_on
from slotlock.auth.providers.provider import Provider
from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.site.site import SiteValues
from slotlock.graphql.context import SiteSettings
from slotlock.graphql.execution.document_cache import DocumentCache
from slotlock.graphql.execution.trusted_documents import (
    TrustedDocumentsError,
    load_trusted_documents,
)
from slotlock.graphql.limits.stream_limit import StreamLimit
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.transport.graphql_server import GraphQLServer
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.shutdown import ShutdownCoordinator
from slotlock.graphql.transport.websocket_endpoint import WebSocketEndpoint
from slotlock.infrastructure.available_cpus import available_cpus
from slotlock.infrastructure.mongo.users.privacy import PersonalDataQueries
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.telemetry import tracing
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver
from slotlock.services.site.current_site import CurrentSite, SharedRead
from slotlock.services.workers.hold_sweeper import SWEEPER_LEASE_TTL_MS, hold_sweeper

log = logging.getLogger("slotlock")


@value_object
class AppState:
    """The endpoints of a running application, and the GraphQL server behind two of them."""

    graphql_server: GraphQLServer
    graphql_http: HttpEndpoint
    graphql_websocket: WebSocketEndpoint
    user_import: Endpoint[Any]
    slot_import: Endpoint[Any]
    user_invitations: Endpoint[Any]
    letters: Endpoint[Any]
    frames: Endpoint[Any]
    personal_data: Endpoint[Any]
    draw_record: Endpoint[Any]
    exports: Endpoint[Any]
    export_links: Endpoint[Any]
    calendars: Endpoint[Any]
    unsubscribe: Endpoint[Any]
    back_channel: Endpoint[Any]
    health: HealthEndpoints
    site: CurrentSite
    periods: SharedRead[tuple[Period, ...]]


@value_object
class SettingsFiles:
    """What is in the files that settings name."""

    documents: DocumentCache
    providers: tuple[Provider, ...]


def read_files(settings: Settings, *, development: bool) -> SettingsFiles:
    """Read the list of documents and the providers, if there are any.

    Raises:
        SettingsError: one of the files cannot be used.
    """
    return SettingsFiles(
        document_cache(settings, development=development),
        sign_in_providers(settings, development=development),
    )


@asynccontextmanager
async def open_app_state(
    settings: Settings,
    *,
    development: bool,
    files: SettingsFiles | None = None,
    process_count: int = 1,
) -> AsyncIterator[AppState]:
    """Open the backend and build the endpoints. On exit, close everything in reverse order.

    It reads the files of the settings unless they were read before. `process_count` is how many
    server processes share the CPUs.
    """
    files = files or read_files(settings, development=development)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(open_backend(settings))
        services = backend.services
        services.site.defaults = site_values(settings)
        passwords = PasswordHasher(math.ceil(available_cpus() / process_count))
        stack.callback(passwords.close)
        login_throttle, mail_throttle = throttles(settings, backend.pipeline)
        auth = Auth(
            services,
            passwords,
            token_signer(settings),
            backend.clock.now,
            login_throttle=login_throttle,
            mail_throttle=mail_throttle,
            refresh_grace=timedelta(seconds=settings.refresh_grace_s),
            registration=settings.registration,
            sends_mail=settings.smtp_url is not None,
            sign_on=await stack.enter_async_context(
                open_sign_on(files.providers, board_url(settings, development=development))
            )
            if files.providers
            else None,
            password_sign_in=settings.password_sign_in,
        )
        stack.push_async_callback(auth.finish_background)
        limits = rate_limits(settings, backend.pipeline)
        await create_admin(settings, auth)
        await stack.enter_async_context(run_live_hubs(services))
        await stack.enter_async_context(run_session_streams(backend, auth))
        sweeper_locks = Locks(backend.pipeline, ttl_ms=SWEEPER_LEASE_TTL_MS, record_metrics=False)
        await stack.enter_async_context(hold_sweeper(services, sweeper_locks))
        if settings.queue_worker:
            await stack.enter_async_context(run_workers(backend, settings, development=development))
        shutdown = ShutdownCoordinator()
        site = site_of(settings, development=development)
        graphql_server = GraphQLServer(
            services=services,
            auth=auth,
            public_reads=settings.public_reads,
            site=site,
            document_cache=files.documents,
            rate_limits=limits,
            streams_per_user=StreamLimit(settings.streams_per_user),
            streams_per_address=StreamLimit(settings.streams_per_address),
            session_streams=auth.session_streams,
            shutdown=shutdown,
            observer=RequestObserver(access_log=settings.access_log)
            if settings.access_log or tracing.is_on
            else None,
        )
        stack.enter_context(graceful_shutdown(shutdown))
        builder = ExportBuilder(settings.mongo_url or "")
        exports = Exports(services, builder)
        letters = Letters(services.site, site.board_url, builder)
        yield AppState(
            graphql_server=graphql_server,
            graphql_http=HttpEndpoint(
                graphql_server, max_body_bytes=settings.max_body, development=development
            ),
            graphql_websocket=WebSocketEndpoint(
                graphql_server, origins_pattern(settings.allowed_origins)
            ),
            user_import=import_endpoint(auth, limits),
            slot_import=slot_import_endpoint(services, auth, limits),
            user_invitations=invitations_endpoint(
                auth, limits, board_url(settings, development=development)
            ),
            letters=letters_endpoint(auth, limits, letters),
            frames=check_in_frame_endpoint(services, auth, limits),
            personal_data=personal_data_endpoint(
                services, auth, limits, PersonalDataQueries(backend.database)
            ),
            draw_record=draw_record_endpoint(
                services, auth, limits, public_reads=settings.public_reads
            ),
            exports=exports_endpoint(auth, limits, exports),
            export_links=export_links_endpoint(auth, limits, exports),
            unsubscribe=unsubscribe_endpoint(auth, limits, services.site),
            back_channel=back_channel_endpoint(auth, limits),
            calendars=calendars_endpoint(
                auth,
                limits,
                Calendars(
                    services,
                    auth,
                    site.board_url,
                    public_reads=settings.public_reads,
                    public_resources=settings.public_resource_calendars,
                ),
            ),
            health=health_endpoints(backend),
            site=services.site,
            periods=services.periods,
        )


def document_cache(settings: Settings, *, development: bool) -> DocumentCache:
    """Build the cache of documents. Unless a setting says so, only development introspects.

    Raises:
        SettingsError: the list of documents cannot be used.
    """
    configured = settings.introspection
    introspection = development if configured is None else configured
    try:
        known = board_documents() if settings.board else {}
        if settings.operations:
            known |= load_trusted_documents(settings.operations)
        return DocumentCache(
            executable_schema,
            introspection=introspection,
            known=known,
            only_known=settings.operations is not None,
        )
    except TrustedDocumentsError as error:
        raise SettingsError(f"{env_name('operations')}: {error}") from None


def site_of(settings: Settings, *, development: bool) -> SiteSettings:
    """Return what the settings alone say of the site."""
    return SiteSettings(
        settings.public_url or "",
        f"{settings.public_url or ''}/developers" if development else None,
        settings.board_errors,
        settings.require_verified_email,
        settings.webhook_private_addresses,
        board_url(settings, development=development) or "",
    )


def site_values(settings: Settings) -> SiteValues:
    """Return what the settings say of the site, where the school has set nothing else."""
    return SiteValues(
        settings.site_name,
        settings.site_color or "",
        settings.site_logo_url or "",
        settings.imprint_url or "",
        settings.privacy_url or "",
        settings.locale or "",
        settings.time_zone,
    )
