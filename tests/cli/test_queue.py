"""Operators handle dead letters of the admission queue and watch its worker."""

import asyncio
import json
import secrets
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.processes import QUEUE_PARTITIONS, AppProcess, app_environment, app_process
from tests.support.cli.command_line import command_errors, replace_environment
from tests.support.polling import wait_until
from tests.support.queue.poison import (
    POISON_INDEX,
    dead_letter_names,
    enqueue_with_poison,
    run_queue_command,
    wait_for_dead_letter_metric,
    wait_until_only_poison_failed,
)
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    expect_final_status,
    expect_status,
    request_ticket,
    watch_ticket,
)

WORKER = (sys.executable, "-m", "slotlock", "worker")
PORT_VARIABLE = "SLOTLOCK_QUEUE_WORKER_METRICS_PORT"


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """Open a deployment with four users and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as opened:
        opened.redis.flushall()
        yield opened


async def create_dead_letter(deployment: Deployment, isolated_queue: IsolatedQueue) -> QueuedUsers:
    """Queue four requests, of which one becomes a dead letter; the worker is killed then."""
    queued = await enqueue_with_poison(deployment, isolated_queue.frontend)
    worker = deployment.worker("holds-raise")
    await wait_until_only_poison_failed(queued)
    worker.kill()
    queued.expire_locks()
    return queued


async def run_command(isolated_queue: IsolatedQueue, *arguments: str, exit_code: int = 0) -> str:
    """Run `slotlock queue` and return its output."""
    return await asyncio.to_thread(
        run_queue_command, isolated_queue, *arguments, exit_code=exit_code
    )


async def test_queue_lengths_and_dead_letters_with_their_reasons_are_shown(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await create_dead_letter(deployment, isolated_queue)
    head, *lines = (await run_command(isolated_queue, "show")).splitlines()
    assert head == "PARTITION  WAITING  DEAD LETTERS"
    counts = [[str(n), "0", str(int(n == queued.partition))] for n in range(QUEUE_PARTITIONS)]
    assert [line.split() for line in lines] == counts
    (letter,) = json.loads(await run_command(isolated_queue, "list", "--json"))
    assert letter["entry"].startswith(f"{queued.partition}/")
    assert letter["slot"] == queued.slot_id
    assert letter["user"].startswith("user_")
    assert letter["reason"] == "RuntimeError: a request for a hold"


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_requeued_dead_letter_is_processed_once_that_is_possible(
    deployment: Deployment, isolated_queue: IsolatedQueue, by_name: bool
) -> None:
    queued = await create_dead_letter(deployment, isolated_queue)
    async with watch_ticket(queued, POISON_INDEX) as watcher:
        await expect_status(watcher, "FAILED")
        names = dead_letter_names(await run_command(isolated_queue, "list")) if by_name else []
        assert await run_command(isolated_queue, "retry", *names) == "queued: 1\n"
        assert (await queued.fetch_tickets())[POISON_INDEX]["position"] == 1
        deployment.worker()
        ticket = await expect_final_status(watcher, "ANSWERED")
    assert ticket["outcome"]["__typename"] == "Booked"
    assert await queued.result_names() == ["Booked"] * 4
    queued.assert_roster(await queued.fetch_tickets())
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, 0)


async def test_a_requeued_request_that_fails_again_is_a_dead_letter_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await create_dead_letter(deployment, isolated_queue)
    await run_command(isolated_queue, "retry")
    deployment.worker("holds-raise")
    await queued.wait_for_status("FAILED", POISON_INDEX)
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, 1)


async def test_a_discarded_request_is_lost_and_its_key_can_be_used_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await create_dead_letter(deployment, isolated_queue)
    async with watch_ticket(queued, POISON_INDEX) as watcher:
        await expect_status(watcher, "FAILED")
        (name,) = dead_letter_names(await run_command(isolated_queue, "list"))
        unconfirmed = await run_command(isolated_queue, "delete", name, exit_code=1)
        assert "loses its request for good. Nothing was changed; --yes confirms it" in unconfirmed
        discarded = await run_command(isolated_queue, "delete", name, "--yes")
        assert discarded == f"deleted {name}\n"
        await expect_final_status(watcher, "LOST")
    assert (await queued.result_names())[POISON_INDEX] == "LOST"
    await wait_for_dead_letter_metric(isolated_queue, queued.partition, 0)
    repeated = await queued.resend(POISON_INDEX, hold=True)
    deployment.worker()
    queued.ticket_ids[POISON_INDEX] = repeated["id"]
    await queued.wait_for_status("ANSWERED")
    assert await queued.result_names() == ["Booked"] * 4


async def test_an_unknown_name_is_neither_requeued_nor_discarded(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await create_dead_letter(deployment, isolated_queue)
    for command in (("retry",), ("delete", "--yes")):
        message = await run_command(isolated_queue, *command, "0/0-1", exit_code=1)
        assert message.startswith("slotlock: 0/0-1 is not a dead letter")
    assert (await queued.result_names())[POISON_INDEX] == "FAILED"


async def test_an_entry_without_a_request_is_listed_and_can_only_be_discarded(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    deployment.redis.xadd("slotlock:{queue:0}:requests", {"x": "y"})
    deployment.worker()
    await wait_for_dead_letter_metric(isolated_queue, 0, 1)
    shown = await run_command(isolated_queue, "list")
    (name,) = dead_letter_names(shown)
    assert "not a booking request" in shown
    assert await run_command(isolated_queue, "retry") == (
        f"queued: 0\n{name} holds no request: delete it\n"
    )
    await run_command(isolated_queue, "retry", name, exit_code=1)
    await run_command(isolated_queue, "delete", name, "--yes")
    assert dead_letter_names(await run_command(isolated_queue, "list")) == []


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
