"""Requests that harm who serves them, and what operators do about those."""

import os
import subprocess
import sys

import httpx

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.polling import poll_until
from tests.support.queue.queued_users import IsolatedQueue, QueuedUsers

POISON_INDEX = 1


async def enqueue_with_poison(
    deployment: Deployment, frontend: AppProcess, user_count: int = 4
) -> QueuedUsers:
    """People in line with places for all, of whom the second wants a hold: that is the poison."""
    slot_id = await deployment.add_slot(frontend, capacity=user_count)
    line = QueuedUsers(deployment, frontend, slot_id, [], [], [])
    for number, person in enumerate(deployment.clients(frontend, user_count)):
        await line.enqueue(person, hold=number == POISON_INDEX)
    return line


def without_poison(queued: QueuedUsers) -> list[int]:
    """All but the poisoned one."""
    return [number for number in range(len(queued.clients)) if number != POISON_INDEX]


async def wait_until_only_poison_failed(queued: QueuedUsers) -> None:
    """Wait until the others have their places, and the poisoned one is set aside."""
    await queued.wait_for_status("ANSWERED", *without_poison(queued))
    await queued.wait_for_status("FAILED", POISON_INDEX)
    told = await queued.fetch_tickets()
    assert {told[number]["outcome"]["__typename"] for number in without_poison(queued)} == {
        "Booked"
    }
    queued.assert_roster(told)


async def wait_for_dead_letter_metric(
    isolated_queue: IsolatedQueue, partition: int, count: int
) -> None:
    """Wait until the metric says that so many are set aside in a partition."""
    figure = f'slotlock_queue_dead_letters{{partition="{partition}"}} {float(count)}'

    async def fetch_metrics() -> dict[str, str]:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            return {"metrics": (await http.get(isolated_queue.frontend.url + "/metrics")).text}

    await poll_until(fetch_metrics, lambda seen: figure in seen["metrics"].splitlines(), figure)


def run_queue_command(isolated_queue: IsolatedQueue, *arguments: str, exit_code: int = 0) -> str:
    """What `slotlock queue` prints, run as an operator would."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}
    command = [sys.executable, "-m", "slotlock", "queue", *arguments]
    ran = subprocess.run(
        command,
        env={**own, **isolated_queue.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == exit_code, ran
    return ran.stdout or ran.stderr


def dead_letter_names(output: str) -> list[str]:
    """The names of what is set aside, in what `slotlock queue show` printed."""
    return [line.split("\t")[0] for line in output.splitlines() if "/" in line.split("\t")[0]]
