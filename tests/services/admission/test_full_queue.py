"""A full line: whoever comes is told at once, and those who stand there keep their place."""

from typing import Any

import pytest

from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.clients.client import Json
from tests.support.queue.deployment import QueueDeployment, queue_deployment, queue_partition

__all__ = ["queue_deployment"]

LENGTH = 3


async def test_who_comes_to_a_full_line_is_told_when_to_ask_again_and_no_place_is_lost(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.frontend(max_queue_length=LENGTH)
    slot_id = await queue_deployment.add_slot(app, capacity=5)
    *there, late = queue_deployment.queue_clients(app, LENGTH + 1)
    tickets = [await customer.enqueue(slot_id, idempotencyKey="one") for customer in there]
    for wish in ({}, {"idempotencyKey": "other"}, {"hold": True}):
        refused = await late.request_booking(slot_id, **wish)
        assert (refused["__typename"], refused["code"]) == ("QueueFull", "QUEUE_FULL")
        assert refused["slotId"] == slot_id
        assert 0 < refused["retryAfterMs"] <= 20_000
    # Those who stand there are told where, however they ask.
    assert [
        await customer.fetch_ticket(t["id"]) for customer, t in zip(there, tickets, strict=True)
    ] == [_plain(ticket) for ticket in tickets]
    assert [await customer.enqueue(slot_id, idempotencyKey="one") for customer in there] == tickets
    assert [await customer.enqueue(slot_id) for customer in there] == tickets
    queue_deployment.worker()
    for customer, ticket in zip(there, tickets, strict=True):
        assert await customer.wait_for_outcome_code(ticket["id"]) == "Booked"
    assert (
        await late.wait_for_outcome_code(
            (await late.enqueue(slot_id, idempotencyKey="other"))["id"]
        )
        == "Booked"
    )


@pytest.mark.parametrize("together", [True, False])
async def test_a_full_part_of_the_line_is_full_for_its_slots_only(
    queue_deployment: QueueDeployment, together: bool
) -> None:
    app = queue_deployment.frontend(max_queue_length=LENGTH)
    slot_id = await queue_deployment.add_slot(app)
    for customer in queue_deployment.queue_clients(app, LENGTH):
        await customer.enqueue(slot_id)
    other = await queue_deployment.add_slot(app)
    while (queue_partition(other) == queue_partition(slot_id)) is not together:
        other = await queue_deployment.add_slot(app)
    told = await queue_deployment.queue_client(app, LENGTH).request_booking(other)
    assert told["__typename"] == ("QueueFull" if together else "Ticket")


async def test_what_is_set_aside_takes_up_room_until_an_operator_decides(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.frontend(max_queue_length=LENGTH)
    slot_id = await queue_deployment.add_slot(app, capacity=5)
    customers = queue_deployment.queue_clients(app, LENGTH)
    aside = queue_keys(queue_partition(slot_id)).dead_letters
    entries: list[Any] = [
        queue_deployment.redis.xadd(aside, {"reason": "?"}) for _ in range(LENGTH - 1)
    ]
    await customers[0].enqueue(slot_id)
    assert (await customers[1].request_booking(slot_id))["__typename"] == "QueueFull"
    queue_deployment.redis.xdel(aside, *entries)
    await customers[1].enqueue(slot_id)


def _plain(ticket: Json) -> Json:
    return {name: value for name, value in ticket.items() if name != "__typename"}
