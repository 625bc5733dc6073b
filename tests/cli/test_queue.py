"""Operators look at what the queue set aside, and put it back in line or give it up."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
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
    open_isolated_queue,
    watch_ticket,
)


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_operators"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=4) as deployment:
        deployment.redis.flushall()
        yield deployment


async def set_aside(deployment: Deployment, isolated_queue: IsolatedQueue) -> QueuedUsers:
    """A line of which one could not be served; who tried is gone."""
    line = await enqueue_with_poison(deployment, isolated_queue.frontend)
    worker = deployment.worker("holds-raise")
    await wait_until_only_poison_failed(line)
    worker.kill()
    line.expire_locks()
    return line


async def asked(isolated_queue: IsolatedQueue, *arguments: str, code: int = 0) -> str:
    """What an operator reads."""
    return await asyncio.to_thread(run_queue_command, isolated_queue, *arguments, exit_code=code)


async def test_what_is_in_line_and_what_was_set_aside_is_shown_with_the_reason(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await set_aside(deployment, isolated_queue)
    shown = (await asked(isolated_queue, "show")).splitlines()
    assert shown[0] == "partition\tin line\tset aside"
    assert shown[1 : 1 + 5] == [f"{n}\t0\t{int(n == line.partition)}" for n in range(5)]
    name, _, whose, reason = shown[6].split("\t")
    assert name.startswith(f"{line.partition}/")
    assert whose.startswith(f"slot {line.slot_id[-24:]} for ")
    assert reason == "RuntimeError: there is something about this one"


@pytest.mark.parametrize("by_name", [True, False])
async def test_what_is_put_back_in_line_is_answered_once_it_can_be(
    deployment: Deployment, isolated_queue: IsolatedQueue, by_name: bool
) -> None:
    line = await set_aside(deployment, isolated_queue)
    async with watch_ticket(line, POISON_INDEX) as watcher:
        await expect_status(watcher, "FAILED")
        names = dead_letter_names(await asked(isolated_queue, "show")) if by_name else []
        assert await asked(isolated_queue, "replay", *names) == "put back in line: 1\n"
        assert (await line.fetch_tickets())[POISON_INDEX]["position"] == 1
        deployment.worker()
        told = await expect_final_status(watcher, "ANSWERED")
    assert told["outcome"]["__typename"] == "Booked"
    assert await line.result_names() == ["Booked"] * 4
    line.assert_roster(await line.fetch_tickets())
    await wait_for_dead_letter_metric(isolated_queue, line.partition, 0)


async def test_what_is_put_back_and_fails_again_is_set_aside_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await set_aside(deployment, isolated_queue)
    await asked(isolated_queue, "replay")
    deployment.worker("holds-raise")
    await line.wait_for_status("FAILED", POISON_INDEX)
    await wait_for_dead_letter_metric(isolated_queue, line.partition, 1)


async def test_what_is_given_up_is_lost_and_its_key_may_be_used_again(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await set_aside(deployment, isolated_queue)
    async with watch_ticket(line, POISON_INDEX) as watcher:
        await expect_status(watcher, "FAILED")
        (name,) = dead_letter_names(await asked(isolated_queue, "show"))
        assert await asked(isolated_queue, "discard", name) == f"discarded {name}\n"
        await expect_final_status(watcher, "LOST")
    assert (await line.result_names())[POISON_INDEX] == "LOST"
    await wait_for_dead_letter_metric(isolated_queue, line.partition, 0)
    again = await line.resend(POISON_INDEX, hold=True)
    deployment.worker()
    line.ticket_ids[POISON_INDEX] = again["id"]
    await line.wait_for_status("ANSWERED")
    assert await line.result_names() == ["Booked"] * 4


async def test_what_is_not_set_aside_is_neither_put_back_nor_given_up(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await set_aside(deployment, isolated_queue)
    for act in ("replay", "discard"):
        told = await asked(isolated_queue, act, "0/0-1", code=1)
        assert told.startswith("slotlock: 0/0-1 is no")
    assert (await line.result_names())[POISON_INDEX] == "FAILED"


async def test_what_is_no_request_is_shown_and_can_only_be_given_up(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    deployment.redis.xadd("slotlock:{queue:0}:requests", {"x": "y"})
    deployment.worker()
    await wait_for_dead_letter_metric(isolated_queue, 0, 1)
    shown = await asked(isolated_queue, "show")
    (name,) = dead_letter_names(shown)
    assert "it is no request of slotlock's" in shown
    assert await asked(isolated_queue, "replay") == (
        f"put back in line: 0\n{name} holds no request: discard it\n"
    )
    await asked(isolated_queue, "replay", name, code=1)
    await asked(isolated_queue, "discard", name)
    assert dead_letter_names(await asked(isolated_queue, "show")) == []
