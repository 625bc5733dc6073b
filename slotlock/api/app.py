"""The ASGI application: routes, middleware and the lifespan."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TypedDict

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from slotlock.api.app_state import AppState, open_app_state, read_files, site_of
from slotlock.api.board.endpoint import board_routes
from slotlock.api.endpoints.health import healthz
from slotlock.api.endpoints.responses import method_not_allowed, to_response
from slotlock.api.endpoints.start_page import development_routes
from slotlock.api.middleware.error_pages import ErrorPages
from slotlock.api.middleware.load_shedding import LoadSheddingMiddleware
from slotlock.api.middleware.response_headers import ResponseHeadersMiddleware
from slotlock.api.server.direct_posts import DirectPosts
from slotlock.api.server.garbage_collection import frozen_objects
from slotlock.api.settings.addresses import origins_pattern
from slotlock.api.settings.settings import Settings
from slotlock.auth.providers.provider import Provider
from slotlock.domain.schedule.periods import Period
from slotlock.domain.site.logo import Logo
from slotlock.domain.site.site import SiteValues
from slotlock.graphql.core.errors import INTERNAL_MESSAGE
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.telemetry import buffered_metrics

# Other servers end the path with a slash; a redirect would turn a POST into a GET.
GRAPHQL_PATHS = ("/graphql", "/graphql/")


class LifespanState(TypedDict):
    """The state that Starlette copies into the scope of every request."""

    app: AppState
    # The server passes these requests on by itself.
    direct_posts: DirectPosts


def build_app(
    settings: Settings,
    *,
    development: bool,
    process_count: int = 1,
    more_routes: Sequence[Route] = (),
) -> ASGIApp:
    """Build the application from settings. Its lifespan opens the connections.

    It reads the files that settings name here, so that all server processes have the same.
    """
    files = read_files(settings, development=development)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[LifespanState]:
        async with open_app_state(
            settings, development=development, files=files, process_count=process_count
        ) as state:
            with frozen_objects():
                yield {
                    "app": state,
                    "direct_posts": DirectPosts(
                        state.graphql_http,
                        limited.requests,
                        state.graphql_server.observer,
                        has_cors=bool(settings.allowed_origins),
                    ),
                }
        buffered_metrics.flush()  # for the other processes, which report the sums

    app = Starlette(
        routes=[
            *more_routes,
            *http_routes(settings, development=development, providers=files.providers),
        ],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _method_not_allowed, 500: _failed},
    )
    # Behind a proxy, a redirect could send a token without TLS to the host of the Host header.
    app.router.redirect_slashes = False
    limited = LoadSheddingMiddleware(
        _GraphQLFirst(ErrorPages(app)),
        max_requests=settings.max_requests,
        max_sockets=settings.max_sockets,
    )
    return ResponseHeadersMiddleware(_with_cors(limited, settings))


def http_routes(
    settings: Settings, *, development: bool, providers: Sequence[Provider] = ()
) -> list[Route]:
    """Return the routes of everything except `/graphql`."""
    return [
        Route("/users/import", _StateEndpoint(lambda state: state.user_import)),
        Route("/slots/import", _StateEndpoint(lambda state: state.slot_import)),
        Route("/users/invitations", _StateEndpoint(lambda state: state.user_invitations)),
        Route("/users/letters", _StateEndpoint(lambda state: state.letters)),
        Route("/check-in/frames", _StateEndpoint(lambda state: state.frames)),
        Route("/personal-data", _StateEndpoint(lambda state: state.personal_data)),
        Route("/personal-data/{user}", _StateEndpoint(lambda state: state.personal_data)),
        Route("/draws/{draw}/record", _StateEndpoint(lambda state: state.draw_record)),
        Route("/exports/links/{token}", _StateEndpoint(lambda state: state.export_links)),
        Route("/exports/{path:path}", _StateEndpoint(lambda state: state.exports)),
        Route("/calendars/{path:path}", _StateEndpoint(lambda state: state.calendars)),
        Route("/unsubscribe/{token}", _StateEndpoint(lambda state: state.unsubscribe)),
        Route("/sign-on/{provider}/logout", _StateEndpoint(lambda state: state.back_channel)),
        Route("/healthz", healthz),
        Route("/readyz", _readyz),
        Route("/metrics", _metrics),
        *(development_routes(settings) if development else ()),
        *(_board_routes(settings, providers, development=development) if settings.board else ()),
        Route("/", _start(settings)),
    ]


def _board_routes(
    settings: Settings, providers: Sequence[Provider], *, development: bool
) -> list[Route]:
    site = site_of(settings, development=development)
    return board_routes(
        site,
        _load_site,
        _find_logo,
        _load_periods,
        settings.registration,
        providers,
        sends_mail=settings.smtp_url is not None,
        password_sign_in=settings.password_sign_in,
    )


async def _load_site(request: Request) -> SiteValues:
    state: AppState = request.state.app
    return await state.site.load()


async def _load_periods(request: Request) -> tuple[Period, ...]:
    state: AppState = request.state.app
    return await state.periods.load()


async def _find_logo(request: Request, digest: str) -> Logo | None:
    state: AppState = request.state.app
    return await state.site.find_logo(digest)


def _with_cors(app: ASGIApp, settings: Settings) -> ASGIApp:
    if not settings.allowed_origins:
        return app
    return _Cors(
        app,
        allow_origin_regex=origins_pattern(settings.allowed_origins),
        allow_methods=["GET", "HEAD", "POST"],
        # Each requested header is allowed, as clients and their tracing add headers of their own.
        # There are no cookies, so a page can only send what its user has given to it.
        allow_headers=["*"],
        # A public page may call a server in a school's network.
        allow_private_network=True,
        expose_headers=[
            "Content-Disposition",
            "ETag",
            "Retry-After",
            "X-Missing-Glyphs",
            "X-Request-ID",
        ],
        max_age=7200,  # the most that Chromium accepts
    )


class _Cors(CORSMiddleware):
    """Gives the refusal of a preflight the body of all errors."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return the response to `OPTIONS`."""
        response = super().preflight_response(request_headers)
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return response
        refusal = to_response(HttpError(response.status_code, bytes(response.body).decode()))
        headers = response.headers.items()
        refusal.headers.update({k: v for k, v in headers if not k.startswith("content-")})
        return refusal


class _GraphQLFirst:
    """Passes what asks for /graphql directly to its endpoint, and all else to Starlette."""

    def __init__(self, others: ASGIApp) -> None:
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and scope["path"] in GRAPHQL_PATHS:
            state: LifespanState = scope["state"]
            app = state["app"]
            endpoint = app.graphql_http if scope["type"] == "http" else app.graphql_websocket
            await endpoint(scope, receive, send)
        else:
            await self._others(scope, receive, send)


class _StateEndpoint:
    """Forwards a request to an endpoint of the state: routes exist before the lifespan opens it.

    The deadline of the request begins here. It names the request in the log, and limits only the
    steps of endpoints that enter it.
    """

    def __init__(self, select: Callable[[AppState], ASGIApp]) -> None:
        self._select = select

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state: LifespanState = scope["state"]
        app = state["app"]
        app.graphql_server.deadlines.begin(scope["request_id"])
        await self._select(app)(scope, receive, send)


async def _readyz(request: Request[LifespanState]) -> Response:
    return await request.state["app"].health.readyz(request)


async def _metrics(request: Request[LifespanState]) -> Response:
    return await request.state["app"].health.metrics(request)


def _start(settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    """Lead browsers to the board, and tell other clients where the API is."""
    public_url = settings.public_url or ""
    body = {"name": "slotlock", "graphql": f"{public_url}/graphql"}

    async def start(request: Request) -> Response:
        if settings.board and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(f"{public_url}/board", 307)
        return JSONResponse(body)

    return start


async def _not_found(request: Request, error: Exception) -> Response:
    return to_response(HttpError(404, "There is nothing here."))


async def _failed(request: Request, error: Exception) -> Response:
    return to_response(HttpError(500, INTERNAL_MESSAGE))


async def _method_not_allowed(request: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    allowed = sorted((headers or {}).get("Allow", "").split(", "))
    return to_response(method_not_allowed(*allowed))
