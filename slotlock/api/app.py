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

from slotlock.api.calendars.endpoint import CalendarsEndpoint
from slotlock.api.crowding import Crowding
from slotlock.api.exports.building import Exports
from slotlock.api.exports.endpoint import exports_endpoint
from slotlock.api.health import healthz, metrics, readyz
from slotlock.api.people import import_endpoint, invitations_endpoint
from slotlock.api.security_headers import SecurityHeaders
from slotlock.api.server import end_with_parent, farewell_before_stop
from slotlock.api.settings import Settings, read_settings
from slotlock.api.wiring import boards, clerks, open_office, rates, streams, throttle
from slotlock.auth import accounts
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import Passwords
from slotlock.auth.tokens import Tokens
from slotlock.desk.desk import utc_now
from slotlock.desk.sweeping import TURN_TTL_MS, sweeping
from slotlock.domain.people import Role
from slotlock.graphql.bounds import Bound
from slotlock.graphql.conversation import Conversation
from slotlock.graphql.documents import Documents
from slotlock.graphql.http import HttpEndpoint
from slotlock.graphql.schema import executable
from slotlock.graphql.socket_endpoint import SocketEndpoint
from slotlock.stores import mongo
from slotlock.stores.locks import Locks
from slotlock.stores.sessions import Sessions

log = logging.getLogger("slotlock")


def create_app() -> ASGIApp:
    """The application as the settings in the environment want it: the factory of each worker."""
    return build_app(read_settings(), development=False, worker=True)


def build_app(settings: Settings, *, development: bool, worker: bool = False) -> ASGIApp:
    """The application for these settings. Nothing is opened before its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        async with open_rooms(settings, development=development) as rooms:
            watching = asyncio.create_task(end_with_parent()) if worker else None
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
        Crowding, most_requests=settings.max_requests, most_sockets=settings.max_sockets
    )
    app = Starlette(
        routes=[
            Route("/graphql", _http),
            WebSocketRoute("/graphql", _socket),
            Route("/people/import", _people_import),
            Route("/people/invitations", _people_invitations),
            Route("/exports/{path:path}", _exports),
            Route("/calendars/{path:path}", _calendars),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/", _welcome),
        ],
        middleware=[cors, crowding] if settings.allowed_origins else [crowding],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _not_allowed},
    )
    # Behind a proxy it would send a token on to an address without TLS, named by the Host header.
    app.router.redirect_slashes = False
    return SecurityHeaders(app)


@asynccontextmanager
async def open_rooms(settings: Settings, *, development: bool) -> AsyncIterator[dict[str, Any]]:
    """Open the stores, wire the rooms, and close everything in the opposite order."""
    async with AsyncExitStack() as closing:
        office = await closing.enter_async_context(open_office(settings))
        desk, sessions = office.desk, Sessions(office.database)
        passwords = Passwords()
        closing.callback(passwords.close)
        keys = [key.get_secret_value() for key in settings.secret_key]
        guard, limits = throttle(settings, office.line), rates(settings, office.line)
        auth = Auth(desk.users, sessions, passwords, Tokens(keys), utc_now, throttle=guard)
        await sessions.prepare()
        await _create_admin(settings, auth)
        await closing.enter_async_context(boards(desk))
        await closing.enter_async_context(streams(office, auth))
        turns = Locks(office.line, ttl_ms=TURN_TTL_MS, measured=False)
        await closing.enter_async_context(sweeping(desk, turns))
        if settings.queue_worker:
            await closing.enter_async_context(clerks(office))
        conversation = Conversation(
            desk,
            auth,
            settings.public_reads,
            development,
            frozenset(settings.allowed_origins),
            documents_for(settings, development=development),
            limits,
            Bound(settings.streams_per_person),
            Bound(settings.streams_per_address),
        )
        closing.enter_context(farewell_before_stop(conversation))
        yield {
            "http": HttpEndpoint(conversation, settings.max_body),
            "socket": SocketEndpoint(conversation),
            "people_import": import_endpoint(auth, limits),
            "people_invitations": invitations_endpoint(auth, limits),
            "exports": exports_endpoint(
                auth, limits, desk, Exports(settings.mongo_url or "", utc_now)
            ),
            "calendars": CalendarsEndpoint(desk, auth, limits, public_reads=settings.public_reads),
            "probe": mongo.Probe(office.database),
            "line": office.line,
            "queue": desk.queue,
        }


def documents_for(settings: Settings, *, development: bool) -> Documents:
    """The documents that are taken: in production none that asks for the schema."""
    wanted = settings.introspection
    return Documents(executable, introspection=development if wanted is None else wanted)


async def _create_admin(settings: Settings, auth: Auth) -> None:
    if settings.admin_email is None or settings.admin_password is None:
        return
    password = settings.admin_password.get_secret_value()
    email = settings.admin_email
    made = await accounts.create_user(auth, "Administrator", email, password, Role.ADMIN)
    if not isinstance(made, accounts.EmailTaken):
        return
    # An earlier start made it, or another worker; or it is somebody's, and stays as it is.
    account = await auth.users.with_password(made.email)
    if account is not None and account[0].role is not Role.ADMIN:
        log.warning("%s has an account that is no admin's: `slotlock users set-role`", email)
    if account is not None and not await auth.passwords.matches(password, account[1]):
        log.warning(
            "%s has an account with another password than the one set; that one stays", email
        )


class _Endpoint:
    """Passes a request to an endpoint that the lifespan opened."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope["state"][self._name](scope, receive, send)


_http = _Endpoint("http")
_socket = _Endpoint("socket")
_people_import = _Endpoint("people_import")
_calendars = _Endpoint("calendars")
_exports = _Endpoint("exports")
_people_invitations = _Endpoint("people_invitations")


async def _welcome(request: Request) -> Response:
    return JSONResponse({"name": "slotlock", "graphql": "/graphql"})


async def _not_found(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "There is nothing here."}, status_code=404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    allowed = sorted(getattr(error, "headers", {})["Allow"].split(", "))
    body = {"error": f"This takes {' and '.join(allowed)}."}
    return JSONResponse(body, status_code=405, headers={"Allow": ", ".join(allowed)})
