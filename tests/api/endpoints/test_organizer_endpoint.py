"""Pages of other sites may send files, and a MongoDB that hangs is told by the status."""

import asyncio
import secrets
from collections.abc import Iterator

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.user_files import generated_user_csv, import_users

ORIGIN = "https://school.example.org"
HEADERS = {"Content-Type": "text/csv", "Origin": ORIGIN}


@pytest.fixture(scope="module")
def mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """A MongoDB of this file's own."""
    with restartable_server(tmp_path_factory.mktemp("away") / "mongodb", "mongodb") as running:
        yield running


@pytest.fixture(scope="module")
def app(
    servers: EmbeddedServers, mongodb: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """An app on it that lets another site's pages in."""
    own = {"SLOTLOCK_MONGO_URL": mongodb.url, "SLOTLOCK_ALLOWED_ORIGINS": ORIGIN}
    settings = {**app_environment(servers, "unused"), **own}
    with forked_app(settings, tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture
async def organizer(app: AppProcess, http: httpx.AsyncClient) -> BookingClient:
    _, somebody = await create_booking_clients(http, 0, app)
    return somebody


@pytest.mark.parametrize("path", ["/users/import?dryRun=true", "/users/invitations"])
async def test_a_page_of_an_allowed_site_may_ask_and_read_every_answer(
    organizer: BookingClient, path: str
) -> None:
    url, http = organizer.url + path, organizer.http
    asked = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    assert (await http.options(url, headers=asked)).status_code == 200
    for identity, status in ((organizer.headers, 200), ({}, 401)):
        headers = {**HEADERS, **identity}
        response = await http.post(url, content=b"email\n", headers=headers)
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == ORIGIN
    stranger = {**asked, "Origin": "https://evil.example.org"}
    assert (await http.options(url, headers=stranger)).status_code == 400


async def test_a_mongodb_that_hangs_is_a_503_and_the_file_can_be_sent_again(
    app: AppProcess, organizer: BookingClient, mongodb: RestartableServer
) -> None:
    _, colleague = await create_booking_clients(organizer.http, 0, app)
    body = generated_user_csv(f"{secrets.token_hex(8)}.test", 3)
    dry_run = await import_users(organizer, body, "?dryRun=true")
    mongodb.pause()
    try:
        headers, http = {**organizer.headers, **HEADERS}, organizer.http
        for response in await asyncio.gather(
            http.post(organizer.url + "/users/import", content=body, headers=headers),
            http.post(organizer.url + "/users/invitations", headers=headers),
            http.get(app.url + "/exports/%0Dforged", headers={**HEADERS, **colleague.headers}),
            http.get(app.url + "/calendars/published.ics", headers=HEADERS),
        ):
            assert (response.status_code, response.json()["code"]) == (503, "INTERNAL")
            assert int(response.headers["retry-after"]) > 0
            assert response.headers["access-control-allow-origin"] == ORIGIN
        name = {"query": "{ __typename }"}
        response = await http.post(app.url + "/graphql", json=name, headers=organizer.headers)
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
    finally:
        mongodb.resume()
    assert await import_users(organizer, body) == {**dry_run, "dryRun": False}
    # Nobody writes lines of the log by what they ask for.
    assert r"'/exports/\rforged' failed" in app.log
    assert "\nforged" not in app.log
