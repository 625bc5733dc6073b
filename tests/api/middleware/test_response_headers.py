"""Every response, of any path and status, has the security headers."""

import re
from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin, Subprotocol

from slotlock.api.app import build_app
from slotlock.api.middleware.response_headers import SECURITY_HEADERS
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.graphiql import CDN, graphiql_page
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.calendars import create_calendar
from tests.support.clients.campaigns import create_campaign
from tests.support.polling import poll_until

ORIGIN = "https://app.example.org"
EXPECTED_HEADERS = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
JSON = {"Content-Type": "application/json"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
PATHS = (
    "/", "/graphql", "/graphql/", "/healthz", "/readyz", "/metrics", "/users/import",
    "/users/invitations", "/exports", "/exports/", "/exports/slots/slot_x.csv", "/calendars/",
    "/calendars/published.ics", "/calendars/private/x.ics", "/nothing", "//evil.example.org/",
    "/%2e%2e/%2e%2e/etc/passwd", "/exports/..%2f..%2fetc%2fpasswd", "/%00", "/" + "a" * 10_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def app(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """Yield an app that allows the pages of some other origins."""
    origins = f"{ORIGIN}:443,https://*.school.example,capacitor://localhost,http://[::1]:3000"
    settings = {**app_environment(servers, "headers"), "SLOTLOCK_ALLOWED_ORIGINS": origins}
    with forked_app(settings, tmp_path_factory.mktemp("headers")) as running:
        yield running


def unexpected_headers(response: httpx.Response) -> dict[str, str | None]:
    """Return the security headers that are missing, repeated or have another value."""
    values = {name: response.headers.get(name) for name in EXPECTED_HEADERS}
    return {name: value for name, value in values.items() if value != EXPECTED_HEADERS[name]}


@pytest.mark.parametrize("path", PATHS)
async def test_every_path_has_the_headers_for_every_method(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    for method in METHODS:
        response = await http.request(method, app.url + path, headers={"Origin": ORIGIN})
        # A busy machine may hold up a server for longer than the probe waits.
        assert response.status_code < 500 or (path, response.status_code) == ("/readyz", 503)
        own = {"cache-control"} if path == "/calendars/published.ics" else set()
        failure = (method, response.status_code, response.headers)
        assert unexpected_headers(response).keys() <= own, failure
        assert "server" not in response.headers
        if response.status_code >= 400 and method != "HEAD":
            body = response.json()
            assert "code" in (body["errors"][0]["extensions"] if "errors" in body else body)
        if response.status_code == 405:
            assert method not in response.headers["allow"].split(", ")


async def test_graphql_responses_of_every_status_have_the_headers(
    organizer: BookingClient, http: httpx.AsyncClient
) -> None:
    url, query = organizer.url + "/graphql", b'{"query": "{ me { email } }"}'
    statuses = set()
    for headers, body in (
        (JSON, query),
        ({**JSON, **organizer.headers}, query),
        ({**JSON, "Accept": "text/event-stream"}, query),
        ({**JSON, "Accept": "image/png"}, query),
        ({"Content-Type": "text/plain"}, query),
        (JSON, b"no JSON"),
        (JSON, b" " * 100_000),
    ):
        response = await http.post(url, content=body, headers=headers)
        assert unexpected_headers(response) == {}
        statuses.add(response.status_code)
    assert statuses == {200, 400, 406, 413, 415}


async def test_files_are_not_cached_and_calendars_five_minutes(organizer: BookingClient) -> None:
    slot_id = await organizer.add_slot()
    for method, path in (
        ("GET", f"/exports/slots/{slot_id}.csv"),
        ("GET", f"/exports/slots/{slot_id}.xlsx"),
        ("GET", f"/exports/campaigns/{await create_campaign(organizer)}.csv"),
        ("POST", "/users/invitations"),
    ):
        url = organizer.url + path
        response = await organizer.http.request(method, url, headers=organizer.headers)
        assert (response.status_code, unexpected_headers(response)) == (200, {}), path
        assert response.headers["content-disposition"].startswith("attachment; ")
    private_path = await create_calendar(organizer)
    for path, visibility in ((private_path, "private"), ("/calendars/published.ics", "public")):
        response = await organizer.http.get(organizer.url + path)
        assert unexpected_headers(response) == {"cache-control": f"{visibility}, max-age=300"}


@pytest.mark.parametrize("path", ["/users/import?dryRun=true", "/users/invitations"])
async def test_pages_of_an_allowed_origin_may_send_files_and_read_every_response(
    organizer: BookingClient, path: str
) -> None:
    url, http = organizer.url + path, organizer.http
    preflight = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    assert (await http.options(url, headers=preflight)).status_code == 200
    file = {"Content-Type": "text/csv", "Origin": ORIGIN}
    for identity, status in ((organizer.headers, 200), ({}, 401)):
        response = await http.post(url, content=b"email\n", headers={**file, **identity})
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
    other_origin = {**preflight, "Origin": "https://evil.example.org"}
    refused = await http.options(url, headers=other_origin)
    assert (refused.status_code, refused.json()["code"]) == (400, "BAD_USER_INPUT")
    assert unexpected_headers(refused) == {}
    assert refused.headers["vary"].startswith("Origin")


async def test_pages_of_an_allowed_origin_may_read_retry_after(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    headers = {"Origin": ORIGIN}
    for response in (
        await http.get(app.url + "/healthz", headers=headers),
        await http.post(app.url + "/graphql", headers=headers, json={"query": "{ __typename }"}),
    ):
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == ORIGIN
        assert "Retry-After" in response.headers["access-control-expose-headers"].split(", ")


async def socket_status(app: AppProcess, origin: str) -> int:
    """Return the status of a handshake by a page."""
    protocols = [Subprotocol("graphql-transport-ws")]
    try:
        async with connect(
            app.websocket_url, origin=Origin(origin), subprotocols=protocols, proxy=None
        ):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        (ORIGIN, True),
        ("capacitor://localhost", True),
        ("http://[::1]:3000", True),
        ("https://5a.school.example", True),
        ("https://maths.5a.school.example", True),
        # The library for sockets in iOS apps sends the scheme of the socket.
        ("wss://app.example.org", True),
        ("https://app.example.org:443", True),
        ("https://app.example.org:80", False),
        ("https://school.example", False),
        ("https://evil-school.example", False),
        ("https://5a.school.example.evil.example", False),
        ("https://evil.example/.school.example", False),
        ("https://5a.school.example:8443", False),
        ("http://5a.school.example", False),
        ("https://appxexample.org", False),
        ("ionic://localhost", False),
        ("http://[::1]", False),
        ("null", False),
        ("file://", False),
    ],
)
async def test_http_event_streams_and_sockets_allow_the_same_origins(
    app: AppProcess, http: httpx.AsyncClient, origin: str, is_allowed: bool
) -> None:
    url, headers, body = app.url + "/graphql", {"Origin": origin}, {"query": "{ __typename }"}
    preflight = {**headers, "Access-Control-Request-Method": "POST"}
    responses = [
        await http.options(url, headers=preflight),
        await http.post(url, headers=headers, json=body),
        await http.post(url, headers={**headers, "Accept": "text/event-stream"}, json=body),
        await http.get(url, headers={**headers, "Accept": JSON["Content-Type"]}, params=body),
        await http.get(app.url + "/calendars/published.ics", headers=headers),
    ]
    assert responses[0].status_code == (200 if is_allowed else 400)
    allowed = [response.headers.get("access-control-allow-origin") for response in responses]
    assert allowed == [origin if is_allowed else None] * len(responses)
    assert await socket_status(app, origin) == (101 if is_allowed else 403)


@pytest.mark.parametrize("path", ["/graphql", "/users/import", "/exports/slots/slot_x.csv"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_pages_of_an_allowed_origin_may_send_every_header(
    app: AppProcess, http: httpx.AsyncClient, path: str, method: str
) -> None:
    names = (
        "apollo-require-preflight,apollographql-client-name,authorization,baggage,cache-control,"
        "content-type,sentry-trace,traceparent,x-apollo-operation-name,x-requested-with"
    )
    preflight = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": names,
        "Access-Control-Request-Private-Network": "true",
    }
    response = await http.options(app.url + path, headers=preflight)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert response.headers["access-control-allow-headers"] == names
    assert response.headers["access-control-max-age"] == "7200"


@pytest.mark.parametrize("path", ["/users/import/", "/exports", "/healthz/"])
async def test_no_path_redirects_to_the_host_of_the_host_header(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    response = await http.post(app.url + path, headers={"Host": "evil.example.org"})
    assert (response.status_code, response.headers.get("location")) == (404, None)


async def test_the_response_to_an_unexpected_failure_has_the_headers_and_a_code() -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError("a bug")

    failing = build_app(Settings(), development=False, more_routes=[Route("/fail", fail)])
    transport = httpx.ASGITransport(failing, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://slotlock.test") as http:
        response = await http.get("/fail")
    assert (response.status_code, unexpected_headers(response)) == (500, {})
    assert response.json()["code"] == "INTERNAL"


@pytest.mark.parametrize(
    ("path", "status", "code", "text"),
    [
        ("/nothing", 404, "NOT_FOUND", "There is nothing here."),
        ("/board/0/x.js", 404, "NOT_FOUND", "no such file of the board"),
        ("/calendars/private/%3Cb%3E.ics", 404, "NOT_FOUND", "There is no such calendar."),
        (
            "/exports/links/expired",
            403,
            "FORBIDDEN",
            "This link is not valid. Please create a new one.",
        ),
        ("/exports/slots/slot_x.csv", 401, "UNAUTHENTICATED", "Please sign in first."),
        ("/users/import", 405, "BAD_USER_INPUT", "Use POST."),
    ],
)
async def test_a_browser_gets_a_failure_as_a_page_and_programs_get_its_code(
    app: AppProcess, http: httpx.AsyncClient, path: str, status: int, code: str, text: str
) -> None:
    page = await http.get(app.url + path, headers={"Accept": BROWSER})
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert f"<p>{text}</p>" in page.text
    assert unexpected_headers(page).keys() == {"content-security-policy"}
    assert "script-src" not in page.headers["content-security-policy"]
    for accept in ("*/*", "application/json, text/plain, */*", ""):
        response = await http.get(app.url + path, headers={"Accept": accept})
        assert response.status_code == status
        assert response.json() == {"error": text, "code": code}
        assert unexpected_headers(response) == {}


async def test_probes_are_the_same_for_browsers(app: AppProcess, http: httpx.AsyncClient) -> None:
    async def probe() -> tuple[int, str]:
        response = await http.get(app.url + "/readyz", headers={"Accept": BROWSER})
        return response.status_code, response.json()["status"]

    await poll_until(probe, (200, "ready").__eq__, "the app is ready")


def test_graphiql_says_that_its_files_are_missing_before_they_could_block_the_page() -> None:
    page = bytes(graphiql_page().body).decode()
    head, body = page.split("<body>")
    assert "GraphiQL could not be loaded." in head
    assert "GraphiQL is not loaded yet." in head
    files = [tag for tag in re.findall(r"<script[^>]*>", page) if "src=" in tag]
    assert files
    assert all(" defer " in tag for tag in files)
    assert 'rel="stylesheet"' not in head
    assert body.index('id="graphiql"') < body.index('rel="stylesheet"')


def test_graphiql_may_load_its_own_files_and_nothing_else() -> None:
    page = graphiql_page()
    rules = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"].split()[0] == CDN
    assert rules["script-src"].count("'sha256-") == bytes(page.body).count(b"<script>") == 2
    assert "unsafe" not in rules["script-src"]
    sources = bytes(page.body).count(b'src="')
    assert sources == bytes(page.body).count(f'src="{CDN}/'.encode()) > 0
