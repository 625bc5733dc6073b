"""Requests that fail or kill their worker, and the commands of operators about dead letters."""

import httpx

from tests.support.apps.deployment import Deployment
from tests.support.apps.fork_server import run_forked_command
from tests.support.apps.processes import AppProcess
from tests.support.polling import poll_until
from tests.support.queue.queued_users import IsolatedQueue, QueuedUsers

POISON_INDEX = 1


async def enqueue_with_poison(
    deployment: Deployment, frontend: AppProcess, user_count: int = 4
) -> QueuedUsers:
    """Enqueue users for a slot with places for all. The second requests a hold: the poison."""
    slot_id = await deployment.add_slot(frontend, capacity=user_count)
    queued = QueuedUsers(deployment, frontend, slot_id)
    for number, client in enumerate(deployment.clients(frontend, user_count)):
        await queued.enqueue(client, hold=number == POISON_INDEX)
    return queued


def without_poison(queued: QueuedUsers) -> list[int]:
    """Return the indexes of all requests but the poison."""
    return [number for number in range(len(queued.clients)) if number != POISON_INDEX]


async def wait_until_only_poison_failed(queued: QueuedUsers) -> None:
    """Wait until the poison is a dead letter and all others are booked."""
    await queued.wait_for_status("ANSWERED", *without_poison(queued))
    await queued.wait_for_status("FAILED", POISON_INDEX)
    tickets = await queued.fetch_tickets()
    outcomes = {tickets[number]["outcome"]["__typename"] for number in without_poison(queued)}
    assert outcomes == {"Booked"}
    queued.assert_roster(tickets)


async def wait_for_dead_letter_metric(
    isolated_queue: IsolatedQueue, partition: int, count: int
) -> None:
    """Wait until the metric counts this many dead letters in a partition."""
    metric = f'slotlock_queue_dead_letters{{partition="{partition}"}} {float(count)}'

    async def fetch_metrics() -> list[str]:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            return (await http.get(isolated_queue.frontend.url + "/metrics")).text.splitlines()

    await poll_until(fetch_metrics, lambda lines: metric in lines, metric)


def run_queue_command(isolated_queue: IsolatedQueue, *arguments: str, exit_code: int = 0) -> str:
    """Run `slotlock queue` and return what it prints."""
    code, output = run_forked_command(isolated_queue.environment, "queue", *arguments)
    assert code == exit_code, output
    return output


def dead_letter_names(output: str) -> list[str]:
    """Return the names of the dead letters that `slotlock queue list` printed."""
    names = [line.split()[0] for line in output.splitlines()]
    return [name for name in names if "/" in name]
