"""Liveness, readiness and metrics for monitoring systems."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess, app_environment, app_process
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    http_client,
    open_websocket,
)
from tests.support.polling import poll_until, wait_until
from tests.support.stores.users import auth_for_database, sign_in_new_user

TWO_WORKERS = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
ME = "{ me { id } }"
ACTIVE_SUBSCRIPTIONS = "slotlock_subscriptions_active"
ME_OK = 'slotlock_requests_total{operation="me",outcome="ok"}'
# Every metric of slotlock with its type. Dashboards and alerts depend on these names.
METRICS = {
    "slotlock_availability_resynced_total": "counter",
    "slotlock_booking_actions_total": "counter",
    "slotlock_bookings_total": "counter",
    "slotlock_build_info": "gauge",
    "slotlock_server_process_exits_total": "counter",
    "slotlock_change_stream_opened_total": "counter",
    "slotlock_holds_expired_total": "counter",
    "slotlock_lock_wait_seconds": "histogram",
    "slotlock_queue_dead_letters": "gauge",
    "slotlock_queue_length": "gauge",
    "slotlock_queue_requests_total": "counter",
    "slotlock_queue_wait_seconds": "histogram",
    "slotlock_outbox_attempts_total": "counter",
    "slotlock_outbox_outages_total": "counter",
    "slotlock_account_mails_total": "counter",
    "slotlock_outbox_entries": "gauge",
    "slotlock_outbox_oldest_seconds": "gauge",
    "slotlock_rate_limit_unchecked_total": "counter",
    "slotlock_clock_skew_seconds": "gauge",
    "slotlock_clock_error_seconds": "gauge",
    "slotlock_redis_degraded": "gauge",
    "slotlock_release_failures_total": "counter",
    "slotlock_request_seconds": "histogram",
    "slotlock_requests_total": "counter",
    "slotlock_shed_requests_total": "counter",
    "slotlock_subscriptions_active": "gauge",
    "slotlock_unread_cuts_total": "counter",
}


def get(app: AppProcess, path: str) -> httpx.Response:
    """Send a GET on a new connection."""
    return httpx.get(app.url + path, trust_env=False, timeout=30)


def test_healthz_responds_while_the_process_lives(app: AppProcess) -> None:
    response = get(app, "/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


@pytest.mark.parametrize("path", ["/readyz", "/readyz?of=mongodb", "/readyz?of=redis"])
async def test_readyz_responds_with_200_while_both_servers_respond(
    app: AppProcess, http: httpx.AsyncClient, path: str
) -> None:
    # A server that a busy machine holds up for a second counts as unavailable.
    response = await poll_until(
        lambda: http.get(app.url + path), lambda each: each.status_code == 200, "both respond"
    )
    body = response.json()
    assert abs(body.pop("clockSkewSeconds")) < 1
    assert body == {"status": "ready", "mongodb": "up", "redis": "up"}


def test_readyz_of_an_unknown_server_is_no_success(app: AppProcess) -> None:
    response = get(app, "/readyz?of=mongo")
    assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")


def test_an_unknown_path_gets_404_in_json(app: AppProcess) -> None:
    response = get(app, "/nothing")
    assert (response.status_code, list(response.json())) == (404, ["error", "code"])


async def test_metrics_exposes_exactly_the_documented_metrics(
    app: AppProcess, organizer: BookingClient
) -> None:
    slot = await organizer.create_slot()
    await organizer.book(slot["id"])
    response = get(app, "/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    types = re.findall(r"^# TYPE (slotlock_\w+) (\w+)$", response.text, re.MULTILINE)
    # The client library adds the time at which each counter and histogram was created.
    assert {name: kind for name, kind in types if not name.endswith("_created")} == METRICS
    series = {line.split("{")[0].split()[0] for line in response.text.splitlines()}
    assert {
        "slotlock_subscriptions_active",
        "slotlock_requests_total",
        "slotlock_bookings_total",
        "slotlock_lock_wait_seconds_count",
        "slotlock_redis_degraded",
    } <= series
    # A busy machine may have held up Redis before.
    wait_until(lambda: app.metric("slotlock_redis_degraded") == 0, "Redis is in use")


async def test_requests_are_counted_by_field(app: AppProcess, organizer: BookingClient) -> None:
    unauthenticated = 'slotlock_requests_total{operation="me",outcome="UNAUTHENTICATED"}'
    before = [app.metric(series) for series in (ME_OK, unauthenticated)]
    await organizer.execute(ME)
    await organizer.execute("{ other: me { id } }")
    organizer.token = "no token"
    await organizer.send(ME)
    after = [app.metric(series) for series in (ME_OK, unauthenticated)]
    assert [after[0] - before[0], after[1] - before[1]] == [2, 1]


def worker_pids(app: AppProcess) -> set[int]:
    """Return the process ids of the workers."""
    children_file = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children")
    return {int(pid) for pid in children_file.read_text().split()}


def has_process_metrics(app: AppProcess) -> bool:
    """Return whether each worker has its memory, CPU time and open files at `/metrics`."""
    names = ("resident_memory_bytes", "cpu_seconds_total", "open_fds")
    return all(
        app.metric(f'process_{name}{{pid="{pid}"}}') > 0
        for name in names
        for pid in worker_pids(app)
    )


def count_metric_files(app: AppProcess) -> int:
    """Return how many files with metrics there are, of processes that run or have ended."""
    maps = Path(f"/proc/{app.process.pid}/maps").read_text()
    (directory,) = {Path(path).parent for path in re.findall(r"(/\S+/counter_\d+\.db)", maps)}
    return len(list(directory.glob("*.db")))


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
async def test_metrics_are_summed_over_all_workers_and_survive_them(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    settings = app_environment(servers, "workers")
    async with auth_for_database(settings["SLOTLOCK_MONGO_URL"]) as auth:
        token = await sign_in_new_user(auth, Role.ORGANIZER)
    with app_process(settings, log_dir, TWO_WORKERS) as app:
        async with http_client() as http:
            client = GraphQLTestClient(http, app.url, token)
            await asyncio.gather(*(client.execute(ME) for _ in range(40)))
            slot = await client.create_slot()
        # Each process writes its counts and durations within a second.
        wait_until(lambda: app.metric(ME_OK) == 40, "the counts of both workers are summed")
        assert [app.metric(ME_OK) for _ in range(10)] == [40] * 10
        durations = 'slotlock_request_seconds_count{operation="me"}'
        wait_until(lambda: app.metric(durations) == 40, "the durations are summed")
        wait_until(lambda: has_process_metrics(app), "both workers have process metrics")
        async with open_websocket(app, token) as opened:
            await opened.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            await opened.next_result()
            assert {app.metric(ACTIVE_SUBSCRIPTIONS) for _ in range(10)} == {1}
            before = worker_pids(app)
            assert len(before) == 2
            files_before = count_metric_files(app)
            for pid in before:
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(worker_pids(app) - before) == 2, "new workers have started")
        wait_until(lambda: app.metric(ACTIVE_SUBSCRIPTIONS) == 0, "no subscription is left")
        assert app.metric(ME_OK) == 40
        # A new process continues the files of one that has ended.
        assert count_metric_files(app) <= files_before
        assert app.metric('slotlock_server_process_exits_total{reason="killed"}') == 2
        for pid in before:
            assert f"server process {pid} was killed by SIGKILL" in app.log
        assert app.stop() == 0
