"""The endpoints for organizers while MongoDB is unavailable, and forged log lines."""

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.user_files import generated_user_csv, import_users
from tests.support.polling import eventually, poll_until

ORIGIN = "https://app.example.org"
HEADERS = {"Content-Type": "text/csv", "Origin": ORIGIN}


@pytest.fixture(scope="module")
def mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Yield a MongoDB that only the tests of this file use."""
    directory = tmp_path_factory.mktemp("unavailable") / "mongodb"
    with restartable_server(directory, "mongodb") as running:
        yield running


@pytest.fixture(scope="module")
def app(
    servers: EmbeddedServers, mongodb: RestartableServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app on this MongoDB that allows the pages of another origin."""
    own = {
        "SLOTLOCK_MONGO_URL": mongodb.url,
        "SLOTLOCK_ALLOWED_ORIGINS": ORIGIN,
    }
    settings = {**app_environment(servers, "unused"), **own}
    with forked_app(settings, tmp_path_factory.mktemp("app")) as running:
        yield running


async def test_an_unresponsive_mongodb_gets_503_and_the_file_can_be_sent_again(
    app: AppProcess, organizer: BookingClient, mongodb: RestartableServer
) -> None:
    _, colleague = create_booking_clients(organizer.http, 0, app)
    body = generated_user_csv(f"{secrets.token_hex(8)}.test", 3)
    dry_run = await import_users(organizer, body, "?dryRun=true")
    mongodb.pause()
    try:
        headers, http = {**organizer.headers, **HEADERS}, organizer.http
        for response in await asyncio.gather(
            http.post(organizer.url + "/users/import", content=body, headers=headers),
            http.post(organizer.url + "/users/invitations", headers=headers),
            http.get(app.url + "/calendars/published.ics", headers=HEADERS),
        ):
            assert (response.status_code, response.json()["code"]) == (503, "INTERNAL")
            assert int(response.headers["retry-after"]) > 0
            assert response.headers["access-control-allow-origin"] == ORIGIN
        forged_url = app.url + "/exports/%0Dforged"

        async def is_logged() -> bool:
            forged = await http.get(forged_url, headers={**HEADERS, **colleague.headers})
            assert (forged.status_code, forged.json()["code"]) == (503, "INTERNAL")
            return r"'/exports/\rforged' failed" in app.log

        # The log has one line a second for such failures.
        await eventually(is_logged, "the failure is in the log")
        query = {"query": "{ __typename }"}
        response = await http.post(app.url + "/graphql", json=query, headers=organizer.headers)
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) > 0
    finally:
        mongodb.resume()
    # MongoDB has a backlog.
    response = await poll_until(
        lambda: http.post(organizer.url + "/users/import", content=body, headers=headers),
        lambda response: response.status_code != 503,
        "the import after the outage",
    )
    # A response that came too late may have been about an import that happened.
    counts = response.json()
    assert counts["created"] + counts["unchanged"] == dry_run["created"] == 3
    in_all = {"created": counts["created"] + counts["unchanged"], "unchanged": 0}
    assert dry_run.pop("preview")["groups"]
    assert {**counts, **in_all} == {**dry_run, "dryRun": False}
    # The line break of the path is escaped, so no client can forge a line of the log.
    assert "\nforged" not in app.log
