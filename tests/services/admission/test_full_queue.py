"""A full queue rejects new requests and keeps the queued ones."""

from typing import Any

import pytest

from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.clients.client import Json
from tests.support.queue.deployment import QueueDeployment, queue_deployment, queue_partition

__all__ = ["queue_deployment"]

MAX_LENGTH = 3


async def test_a_full_queue_says_when_to_retry_and_processes_the_queued_requests(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.frontend(max_queue_length=MAX_LENGTH)
    slot_id = await queue_deployment.add_slot(app, capacity=5)
    *queued, rejected = queue_deployment.queue_clients(app, MAX_LENGTH + 1)
    tickets = [await client.enqueue(slot_id, idempotencyKey="one") for client in queued]
    for options in ({}, {"idempotencyKey": "other"}, {"hold": True}):
        outcome = await rejected.request_booking(slot_id, **options)
        assert (outcome["__typename"], outcome["code"]) == ("QueueFull", "QUEUE_FULL")
        assert outcome["slotId"] == slot_id
        assert 0 < outcome["retryAfterMs"] <= 20_000
    # A queued client gets its ticket in every way.
    fetched = [await c.fetch_ticket(t["id"]) for c, t in zip(queued, tickets, strict=True)]
    assert fetched == [_without_typename(ticket) for ticket in tickets]
    assert [await client.enqueue(slot_id, idempotencyKey="one") for client in queued] == tickets
    assert [await client.enqueue(slot_id) for client in queued] == tickets
    queue_deployment.worker()
    for client, ticket in zip(queued, tickets, strict=True):
        assert await client.wait_for_outcome_code(ticket["id"]) == "Booked"
    retried = await rejected.enqueue(slot_id, idempotencyKey="other")
    assert await rejected.wait_for_outcome_code(retried["id"]) == "Booked"


@pytest.mark.parametrize("same_partition", [True, False])
async def test_a_full_partition_rejects_requests_for_its_own_slots_only(
    queue_deployment: QueueDeployment, same_partition: bool
) -> None:
    app = queue_deployment.frontend(max_queue_length=MAX_LENGTH)
    slot_id = await queue_deployment.add_slot(app)
    for client in queue_deployment.queue_clients(app, MAX_LENGTH):
        await client.enqueue(slot_id)
    other = await queue_deployment.add_slot(app)
    while (queue_partition(other) == queue_partition(slot_id)) is not same_partition:
        other = await queue_deployment.add_slot(app)
    outcome = await queue_deployment.queue_client(app, MAX_LENGTH).request_booking(other)
    assert outcome["__typename"] == ("QueueFull" if same_partition else "Ticket")


async def test_dead_letters_count_towards_the_maximum_length(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.frontend(max_queue_length=MAX_LENGTH)
    slot_id = await queue_deployment.add_slot(app, capacity=5)
    clients = queue_deployment.queue_clients(app, MAX_LENGTH)
    stream, redis = queue_keys(queue_partition(slot_id)).dead_letters, queue_deployment.redis
    ids: list[Any] = [redis.xadd(stream, {"reason": "?"}) for _ in range(MAX_LENGTH - 1)]
    await clients[0].enqueue(slot_id)
    assert (await clients[1].request_booking(slot_id))["__typename"] == "QueueFull"
    redis.xdel(stream, *ids)
    await clients[1].enqueue(slot_id)


def _without_typename(ticket: Json) -> Json:
    return {name: value for name, value in ticket.items() if name != "__typename"}
