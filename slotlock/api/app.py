"""The ASGI application: the rooms wired together for as long as a process lives."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from slotlock.api.backend import (
    login_throttle,
    open_backend,
    rate_limits,
    run_admission_workers,
    run_live_hubs,
    run_session_streams,
)
from slotlock.api.calendars.endpoint import CalendarEndpoint
from slotlock.api.endpoints.health import healthz, metrics, readyz
from slotlock.api.endpoints.users import import_endpoint, invitations_endpoint
from slotlock.api.exports.builder import ExportBuilder
from slotlock.api.exports.endpoint import exports_endpoint
from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.middleware.security_headers import SecurityHeaders
from slotlock.api.server.serve import exit_with_parent, graceful_shutdown
from slotlock.api.settings.settings import Settings, read_settings
from slotlock.auth import accounts
from slotlock.auth.container import Auth
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import TokenSigner
from slotlock.domain.users.user import Role
from slotlock.graphql.execution.documents import DocumentCache
from slotlock.graphql.limits.connections import ConnectionLimit
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.transport.http import HttpEndpoint
from slotlock.graphql.transport.server import GraphQLServer
from slotlock.graphql.transport.websocket_endpoint import WebSocketEndpoint
from slotlock.infrastructure.mongo import client
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.container import utc_now
from slotlock.services.workers.hold_sweeper import SWEEPER_LEASE_TTL_MS, hold_sweeper

log = logging.getLogger("slotlock")


def create_app() -> ASGIApp:
    """The application as the settings in the environment want it: the factory of each worker."""
    return build_app(read_settings(), development=False, worker=True)


def build_app(settings: Settings, *, development: bool, worker: bool = False) -> ASGIApp:
    """The application for these settings. Nothing is opened before its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with open_app_state(settings, development=development) as rooms:
            watching = asyncio.create_task(exit_with_parent()) if worker else None
            yield rooms
            if watching is not None:
                watching.cancel()

    # CORS answers browsers' preflights; without allowed origins no other site's page gets through.
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(settings.allowed_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
        expose_headers=["Retry-After"],
        max_age=600,
    )
    crowding = Middleware(
        LoadSheddingMiddleware,
        max_requests=settings.max_requests,
        max_sockets=settings.max_sockets,
    )
    app = Starlette(
        routes=[
            Route("/graphql", _http),
            WebSocketRoute("/graphql", _websocket),
            Route("/people/import", _user_import),
            Route("/people/invitations", _user_invitations),
            Route("/exports/{path:path}", _exports),
            Route("/calendars/{path:path}", _calendars),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/", _service_info),
        ],
        middleware=[cors, crowding] if settings.allowed_origins else [crowding],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _method_not_allowed},
    )
    # Behind a proxy it would send a token on to an address without TLS, named by the Host header.
    app.router.redirect_slashes = False
    return SecurityHeaders(app)


@asynccontextmanager
async def open_app_state(settings: Settings, *, development: bool) -> AsyncIterator[dict[str, Any]]:
    """Open the stores, wire the rooms, and close everything in the opposite order."""
    async with AsyncExitStack() as closing:
        office = await closing.enter_async_context(open_backend(settings))
        desk, sessions = office.services, SessionRepository(office.database)
        passwords = PasswordHasher()
        closing.callback(passwords.close)
        keys = [key.get_secret_value() for key in settings.secret_key]
        guard, limits = (
            login_throttle(settings, office.pipeline),
            rate_limits(settings, office.pipeline),
        )
        auth = Auth(
            desk.users, sessions, passwords, TokenSigner(keys), utc_now, login_throttle=guard
        )
        await sessions.create_indexes()
        await _create_admin(settings, auth)
        await closing.enter_async_context(run_live_hubs(desk))
        await closing.enter_async_context(run_session_streams(office, auth))
        turns = Locks(office.pipeline, ttl_ms=SWEEPER_LEASE_TTL_MS, record_metrics=False)
        await closing.enter_async_context(hold_sweeper(desk, turns))
        if settings.queue_worker:
            await closing.enter_async_context(run_admission_workers(office))
        conversation = GraphQLServer(
            desk,
            auth,
            settings.public_reads,
            development,
            frozenset(settings.allowed_origins),
            document_cache(settings, development=development),
            limits,
            ConnectionLimit(settings.streams_per_user),
            ConnectionLimit(settings.streams_per_address),
        )
        closing.enter_context(graceful_shutdown(conversation))
        yield {
            "http": HttpEndpoint(conversation, settings.max_body),
            "socket": WebSocketEndpoint(conversation),
            "people_import": import_endpoint(auth, limits),
            "people_invitations": invitations_endpoint(auth, limits),
            "exports": exports_endpoint(
                auth, limits, desk, ExportBuilder(settings.mongo_url or "", utc_now)
            ),
            "calendars": CalendarEndpoint(desk, auth, limits, public_reads=settings.public_reads),
            "probe": client.MongoHealth(office.database),
            "line": office.pipeline,
            "queue": desk.admission_queue,
        }


def document_cache(settings: Settings, *, development: bool) -> DocumentCache:
    """The documents that are taken: in production none that asks for the schema."""
    wanted = settings.introspection
    return DocumentCache(executable_schema, introspection=development if wanted is None else wanted)


async def _create_admin(settings: Settings, auth: Auth) -> None:
    if settings.admin_email is None or settings.admin_password is None:
        return
    password = settings.admin_password.get_secret_value()
    email = settings.admin_email
    made = await accounts.create_user(auth, "Administrator", email, password, Role.ADMIN)
    if not isinstance(made, accounts.EmailTaken):
        return
    # An earlier start made it, or another worker; or it is somebody's, and stays as it is.
    account = await auth.users.find_with_password_hash(made.email)
    if account is not None and account[0].role is not Role.ADMIN:
        log.warning("%s has an account that is no admin's: `slotlock users set-role`", email)
    if account is not None and not await auth.passwords.matches(password, account[1]):
        log.warning(
            "%s has an account with another password than the one set; that one stays", email
        )


class _StateEndpoint:
    """Passes a request to an endpoint that the lifespan opened."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["state"][self._name](scope, receive, send)


_http = _StateEndpoint("http")
_websocket = _StateEndpoint("socket")
_user_import = _StateEndpoint("people_import")
_calendars = _StateEndpoint("calendars")
_exports = _StateEndpoint("exports")
_user_invitations = _StateEndpoint("people_invitations")


async def _service_info(request: Request) -> Response:
    return JSONResponse({"name": "slotlock", "graphql": "/graphql"})


async def _not_found(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "There is nothing here."}, status_code=404)


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    allowed = sorted(getattr(error, "headers", {})["Allow"].split(", "))
    body = {"error": f"This takes {' and '.join(allowed)}."}
    return JSONResponse(body, status_code=405, headers={"Allow": ", ".join(allowed)})
