"""Every response, of any path and status, has the security headers."""

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slotlock.api.middleware.security_headers import SECURITY_HEADERS, SecurityHeadersMiddleware
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.graphql.transport.graphiql import CDN, graphiql_page
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import create_calendar
from tests.support.clients.campaigns import create_campaign

ORIGIN = "https://app.example.org"
EXPECTED_HEADERS = {name.decode(): value.decode() for name, value in SECURITY_HEADERS}
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
    """Yield an app that allows the pages of one other origin."""
    settings = {**app_environment(servers, "headers"), "SLOTLOCK_ALLOWED_ORIGINS": ORIGIN}
    with forked_app(settings, tmp_path_factory.mktemp("headers")) as running:
        yield running


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> BookingClient:
    return (create_booking_clients(http, 0, app))[1]


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
        assert response.status_code < 500
        own = {"cache-control"} if path == "/calendars/published.ics" else set()
        failure = (method, response.status_code, response.headers)
        assert unexpected_headers(response).keys() <= own, failure
        assert "server" not in response.headers
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


async def test_files_are_not_cached_and_calendars_for_five_minutes(
    organizer: BookingClient,
) -> None:
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


@pytest.mark.parametrize("path", ["/graphql/", "/users/import/", "/exports", "/healthz/"])
async def test_no_path_redirects_to_the_host_of_the_host_header(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    response = await http.post(app.url + path, headers={"Host": "evil.example.org"})
    assert (response.status_code, response.headers.get("location")) == (404, None)


async def test_the_response_to_an_unexpected_failure_has_the_headers() -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError("a bug")

    guarded = SecurityHeadersMiddleware(Starlette(routes=[Route("/", fail)]))
    transport = httpx.ASGITransport(guarded, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://slotlock.test") as http:
        response = await http.get("/")
    assert (response.status_code, unexpected_headers(response)) == (500, {})


def test_graphiql_may_load_its_own_files_and_nothing_else() -> None:
    page = graphiql_page()
    rules = dict(rule.split(" ", 1) for rule in page.headers["content-security-policy"].split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"].split()[0] == CDN
    assert rules["script-src"].count("'sha256-") == bytes(page.body).count(b"<script>") == 1
    assert "unsafe" not in rules["script-src"]
    sources = bytes(page.body).count(b'src="')
    assert sources == bytes(page.body).count(f'src="{CDN}/'.encode()) > 0
