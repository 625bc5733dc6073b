"""Machines learn whether a process lives, whether it can serve, and what it counted."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess, app_environment, app_process
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    http_client,
    open_websocket,
)
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, sign_in_new_user

WORKERS = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
ME = "{ me { id } }"


@pytest.fixture
async def organizer(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with (
        auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth,
        http_client() as http,
    ):
        yield GraphQLTestClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))


def get(app: AppProcess, path: str) -> httpx.Response:
    """The answer on a connection of its own: with several workers, of any of them."""
    return httpx.get(app.url + path, trust_env=False, timeout=30)


def test_a_process_that_lives_says_so(app: AppProcess) -> None:
    response = get(app, "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


@pytest.mark.parametrize("path", ["/readyz", "/readyz?of=mongodb", "/readyz?of=redis"])
def test_a_process_whose_servers_answer_is_ready(app: AppProcess, path: str) -> None:
    response = get(app, path)
    assert response.status_code == 200
    assert response.json() == {"status": "ready", "mongodb": "up", "redis": "up"}


def test_what_is_not_there_is_a_404_in_json(app: AppProcess) -> None:
    response = get(app, "/nothing")
    assert (response.status_code, list(response.json())) == (404, ["error"])


async def test_the_metrics_have_the_names_of_the_contract(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    slot = await organizer.create_slot()
    for _ in range(2):
        await organizer.book(slot["id"])
    response = get(app, "/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    names = {line.split("{")[0].split()[0] for line in response.text.splitlines() if line[0] != "#"}
    assert {
        "slotlock_subscriptions_active",
        "slotlock_requests_total",
        "slotlock_bookings_total",
        "slotlock_lock_wait_seconds_count",
        "slotlock_redis_degraded",
    } <= names
    assert "# TYPE slotlock_lock_wait_seconds histogram" in response.text
    assert app.metric("slotlock_redis_degraded") == 0


async def test_requests_are_counted_by_field_and_outcome(
    app: AppProcess, organizer: GraphQLTestClient
) -> None:
    counted = {
        "ok": 'slotlock_requests_total{operation="me",outcome="ok"}',
        "bad": 'slotlock_requests_total{operation="me",outcome="UNAUTHENTICATED"}',
    }
    before = {key: app.metric(name) for key, name in counted.items()}
    await organizer.execute(ME)
    await organizer.execute("{ other: me { id } }")
    organizer.token = "no token"
    await organizer.send(ME)
    after = {key: app.metric(name) for key, name in counted.items()}
    assert (after["ok"] - before["ok"], after["bad"] - before["bad"]) == (2, 1)


def workers_of(app: AppProcess) -> set[int]:
    task = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children")
    children = {int(pid) for pid in task.read_text().split()}
    return {pid for pid in children if b"spawn_main" in _command_line(pid)}


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # one that was no worker, and is over
        return b""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
async def test_the_metrics_of_all_workers_are_summed_and_outlive_them(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    settings = app_environment(servers, "workers")
    async with auth_for_database(settings["SLOTLOCK_MONGO_URL"]) as auth:
        token = await sign_in_new_user(auth, Role.ORGANIZER)
    requests = 'slotlock_requests_total{operation="me",outcome="ok"}'
    with app_process(settings, log_dir, WORKERS) as app:
        async with http_client() as http:
            client = GraphQLTestClient(http, app.url, token)
            await asyncio.gather(*(client.execute(ME) for _ in range(40)))
            slot = await client.create_slot()
        assert [app.metric(requests) for _ in range(10)] == [40] * 10
        async with open_websocket(app, token) as opened:
            await opened.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            await opened.next_result()
            assert {app.metric("slotlock_subscriptions_active") for _ in range(10)} == {1}
            before = workers_of(app)
            assert len(before) == 2
            for pid in before:
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(workers_of(app) - before) == 2, "other workers took over")
        wait_until(
            lambda: app.metric("slotlock_subscriptions_active") == 0, "no subscription is left"
        )
        assert app.metric(requests) == 40
        assert app.stop() == 0
