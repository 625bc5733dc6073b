"""What a ticket was told in the end is not taken back, whatever is asked or comes back then."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    open_isolated_queue,
    request_ticket,
    result_name,
    watch_ticket,
)


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_final"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=3) as deployment:
        deployment.redis.flushall()
        yield deployment


async def lost_and_its_key_sent_for_something_else(
    deployment: Deployment, isolated_queue: IsolatedQueue, way: str, off: str = ""
) -> tuple[QueuedUsers, str]:
    """Lose a request, send its key with another one, restore the first; return it and the outcome.

    The ticket of the first request was LOST before its key was sent again.
    """
    line = await enqueue_users(
        deployment,
        deployment.app(off) if off else isolated_queue.frontend,
        user_count=1,
        capacity=2,
    )
    entries = line.entries
    deployment.redis.flushall()
    assert await line.result_names() == ["LOST"]
    ada, key = line.clients[0], {"idempotencyKey": line.idempotency_keys[0]}
    other = line.slot_id if "hold" in way else await deployment.add_slot(line.frontend, capacity=1)
    wish = {**key, "hold": "hold" in way}
    if "bookSlot" in way:
        answer = await ada.book_slot(other, **wish)
    else:
        answer = await request_ticket(ada, other, **wish)
    deployment.redis.flushall()
    line.redeliver(entries)
    deployment.worker(off)
    await line.wait_until_empty()
    return line, str(answer["__typename"])


@pytest.mark.parametrize("way", ["requestBooking", "requestBooking, hold", "bookSlot, hold"])
async def test_who_was_told_lost_is_not_booked_when_its_key_is_sent_for_something_else(
    deployment: Deployment, isolated_queue: IsolatedQueue, way: str
) -> None:
    line, answer = await lost_and_its_key_sent_for_something_else(deployment, isolated_queue, way)
    assert answer == "KeyReused"
    assert await line.result_names() == ["LOST"]
    assert deployment.consistent_booking_ids(line.slot_id) == set()
    assert (await line.resend(0))["status"] == "QUEUED"
    await line.wait_for_status("ANSWERED")
    assert await line.result_names() == ["Booked"]


async def test_control_with_marks_of_no_question_who_was_told_lost_is_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line, _ = await lost_and_its_key_sent_for_something_else(
        deployment, isolated_queue, "requestBooking", "lost-request-hash"
    )
    assert len(deployment.consistent_booking_ids(line.slot_id)) == 1


async def test_who_is_told_lost_while_the_key_stands_for_something_else_is_granted_by_nobody(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=2)
    entries = line.entries
    deployment.redis.flushall()
    other = await line.resend(0, hold=True)
    assert other["status"] == "QUEUED"
    assert await line.result_names() == ["LOST"]
    line.redeliver(entries)
    deployment.worker()
    await line.wait_until_empty()
    line.ticket_ids.append(other["id"])
    line.clients.append(line.clients[0])
    assert await line.result_names() == ["LOST", "KeyReused"]
    assert deployment.consistent_booking_ids(line.slot_id) == set()


async def test_who_books_under_the_key_of_their_ticket_is_told_so_at_once_and_for_good(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=3)
    cid = line.clients[2]
    await cid.book_slot(line.slot_id, idempotencyKey=line.idempotency_keys[2])
    told: list[Any] = [await line.resend(2), await request_ticket(cid, line.slot_id)]
    assert [result_name(ticket) for ticket in told] == ["Booked"] * 2
    assert await line.result_names() == ["QUEUED", "QUEUED", "Booked"]
    async with watch_ticket(line, 2) as watcher:
        await expect_final_status(watcher, "ANSWERED")
    deployment.worker()
    await line.wait_for_status("ANSWERED")
    line.assert_roster(await line.fetch_tickets())
    assert await line.result_names() == ["Booked"] * 3


async def test_who_was_told_lost_stays_lost_though_redis_comes_back_with_what_it_had(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    stream, tickets, _ = queue_keys(line.partition)
    kept: Any = deployment.redis.xrange(stream)
    known: Any = deployment.redis.hgetall(tickets)
    deployment.redis.flushall()
    assert await line.result_names() == ["LOST"]
    for entry, fields in kept:
        deployment.redis.xadd(stream, fields, id=entry)
    deployment.redis.hset(tickets, mapping=known)
    assert await line.result_names() == ["LOST"]
    deployment.worker()
    await line.wait_until_empty()
    assert await line.result_names() == ["LOST"]
