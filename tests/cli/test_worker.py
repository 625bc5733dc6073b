"""A queue worker process can be watched: probes, and metrics of what it served."""

import asyncio
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import AppProcess, app_environment, app_process
from tests.support.cli.command_line import command_errors, replace_environment
from tests.support.polling import wait_until
from tests.support.queue.queued_users import IsolatedQueue, request_ticket

WORKER = (sys.executable, "-m", "slotlock", "worker")
PORT_VARIABLE = "SLOTLOCK_QUEUE_WORKER_METRICS_PORT"


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment with two users and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=2) as opened:
        opened.redis.flushall()
        yield opened


def has_served(worker: AppProcess) -> bool:
    """Return whether the metrics of a worker show the one ticket of the test, and its wait."""
    names = ('slotlock_bookings_total{outcome="Booked"}', "slotlock_queue_wait_seconds_count")
    return [worker.metric(name) for name in names] == [1, 1]


async def test_a_worker_shows_the_tickets_that_it_served_and_responds_to_probes(
    isolated_queue: IsolatedQueue, deployment: Deployment, log_dir: Path
) -> None:
    app = isolated_queue.frontend
    slot_id = await deployment.add_slot(app)
    ticket = await request_ticket(
        deployment.client(app, 0), slot_id, idempotencyKey=secrets.token_hex(8)
    )
    assert ticket["status"] == "QUEUED"
    settings = isolated_queue.environment
    with app_process(settings, log_dir, WORKER, port_variable=PORT_VARIABLE) as worker:
        await asyncio.to_thread(wait_until, lambda: has_served(worker), "the ticket is counted")
        get = deployment.http.get
        for path in ("/healthz", "/readyz", "/readyz?of=mongodb"):
            response = await get(worker.url + path)
            assert response.status_code == 200
            assert response.headers["x-content-type-options"] == "nosniff"
        assert (await get(worker.url + "/graphql")).status_code == 404
        isolated_queue.valkey.kill()
        try:
            assert (await get(worker.url + "/readyz")).status_code == 503
            assert (await get(worker.url + "/healthz")).status_code == 200
        finally:
            isolated_queue.valkey.start()
        assert worker.stop() == 0  # also with the idle connections of the client


def test_a_port_of_the_worker_that_is_in_use_is_reported_with_the_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        port = port_holder.getsockname()[1]
        settings = app_environment(servers, "workers") | {PORT_VARIABLE: str(port)}
        replace_environment(monkeypatch, settings)
        (line,) = command_errors(capsys, "worker")
    assert f"127.0.0.1:{port}" in line
    assert PORT_VARIABLE in line
