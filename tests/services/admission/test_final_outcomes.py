"""The final state of a ticket never changes, whatever is requested or restored afterwards."""

from typing import Any

import pytest

from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.deployment import Deployment
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    request_ticket,
    result_name,
    watch_ticket,
)


async def lose_and_reuse_key(
    deployment: Deployment,
    isolated_queue: IsolatedQueue,
    operation: str,
    without_guards: str = "",
) -> tuple[QueuedUsers, str]:
    """Lose a request, send its key with another one, and restore and process the first.

    Returns the queued user, and the type of the outcome of the other request.
    """
    frontend = deployment.app(without_guards) if without_guards else isolated_queue.frontend
    queued = await enqueue_users(deployment, frontend, user_count=1, capacity=2)
    entries = queued.entries
    deployment.redis.flushall()
    assert await queued.result_names() == ["LOST"]
    client, hold = queued.clients[0], "hold" in operation
    slot_id = queued.slot_id if hold else await deployment.add_slot(frontend, capacity=1)
    options: dict[str, Any] = {"idempotencyKey": queued.idempotency_keys[0], "hold": hold}
    if "bookSlot" in operation:
        outcome = await client.book_slot(slot_id, **options)
    else:
        outcome = await request_ticket(client, slot_id, **options)
    deployment.redis.flushall()
    queued.redeliver(entries)
    deployment.worker(without_guards)
    await queued.wait_until_empty()
    return queued, str(outcome["__typename"])


@pytest.mark.parametrize("operation", ["requestBooking", "requestBooking, hold", "bookSlot, hold"])
async def test_a_lost_request_is_not_booked_after_its_key_is_sent_with_another_request(
    deployment: Deployment, isolated_queue: IsolatedQueue, operation: str
) -> None:
    queued, outcome = await lose_and_reuse_key(deployment, isolated_queue, operation)
    assert outcome == "KeyReused"
    assert await queued.result_names() == ["LOST"]
    assert deployment.consistent_booking_ids(queued.slot_id) == set()
    await queued.resend(0)
    await queued.wait_for_status("ANSWERED")
    assert await queued.result_names() == ["Booked"]


async def test_control_if_a_lost_record_ignores_the_request_hash_the_lost_request_is_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued, _ = await lose_and_reuse_key(
        deployment, isolated_queue, "requestBooking", "lost-request-hash"
    )
    assert len(deployment.consistent_booking_ids(queued.slot_id)) == 1


async def test_a_request_reported_lost_while_its_key_is_queued_again_is_never_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=2)
    entries = queued.entries
    deployment.redis.flushall()
    other = await queued.resend(0, hold=True)
    assert other["status"] == "QUEUED"
    assert await queued.result_names() == ["LOST"]
    queued.redeliver(entries)
    deployment.worker()
    await queued.wait_until_empty()
    queued.ticket_ids.append(other["id"])
    queued.clients.append(queued.clients[0])
    assert await queued.result_names() == ["LOST", "KeyReused"]
    assert deployment.consistent_booking_ids(queued.slot_id) == set()


async def test_a_booking_with_the_key_of_a_queued_ticket_answers_the_ticket_immediately(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=3)
    last = queued.clients[2]
    await last.book_slot(queued.slot_id, idempotencyKey=queued.idempotency_keys[2])
    tickets = [await queued.resend(2), await request_ticket(last, queued.slot_id)]
    assert [result_name(ticket) for ticket in tickets] == ["Booked"] * 2
    assert await queued.result_names() == ["QUEUED", "QUEUED", "Booked"]
    async with watch_ticket(queued, 2) as watcher:
        await expect_final_status(watcher, "ANSWERED")
    deployment.worker()
    await queued.wait_for_status("ANSWERED")
    queued.assert_roster(await queued.fetch_tickets())
    assert await queued.result_names() == ["Booked"] * 3


async def test_a_lost_ticket_stays_lost_though_redis_restores_its_data(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    keys = queue_keys(queued.partition)
    entries: Any = deployment.redis.xrange(keys.requests)
    tickets: Any = deployment.redis.hgetall(keys.tickets)
    deployment.redis.flushall()
    assert await queued.result_names() == ["LOST"]
    for id_, fields in entries:
        deployment.redis.xadd(keys.requests, fields, id=id_)
    deployment.redis.hset(keys.tickets, mapping=tickets)
    assert await queued.result_names() == ["LOST"]
    deployment.worker()
    await queued.wait_until_empty()
    assert await queued.result_names() == ["LOST"]
