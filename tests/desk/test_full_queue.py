"""A full line: whoever comes is told at once, and those who stand there keep their place."""

from typing import Any

import pytest

from slotlock.stores.queue_scripts import keys
from tests.support.client import Json
from tests.support.tickets import QueueScene, line, partition_of

__all__ = ["line"]

LENGTH = 3


async def test_who_comes_to_a_full_line_is_told_when_to_ask_again_and_no_place_is_lost(
    line: QueueScene,
) -> None:
    app = line.counter(length=LENGTH)
    slot_id = await line.slot(app, capacity=5)
    *there, late = line.customers(app, LENGTH + 1)
    tickets = [await customer.stand(slot_id, idempotencyKey="one") for customer in there]
    for wish in ({}, {"idempotencyKey": "other"}, {"hold": True}):
        refused = await late.request(slot_id, **wish)
        assert (refused["__typename"], refused["code"]) == ("QueueFull", "QUEUE_FULL")
        assert refused["slotId"] == slot_id
        assert 0 < refused["retryAfterMs"] <= 20_000
    # Those who stand there are told where, however they ask.
    assert [await customer.ticket(t["id"]) for customer, t in zip(there, tickets, strict=True)] == [
        _plain(ticket) for ticket in tickets
    ]
    assert [await customer.stand(slot_id, idempotencyKey="one") for customer in there] == tickets
    assert [await customer.stand(slot_id) for customer in there] == tickets
    line.worker()
    for customer, ticket in zip(there, tickets, strict=True):
        assert await customer.code(ticket["id"]) == "Booked"
    assert await late.code((await late.stand(slot_id, idempotencyKey="other"))["id"]) == "Booked"


@pytest.mark.parametrize("together", [True, False])
async def test_a_full_part_of_the_line_is_full_for_its_slots_only(
    line: QueueScene, together: bool
) -> None:
    app = line.counter(length=LENGTH)
    slot_id = await line.slot(app)
    for customer in line.customers(app, LENGTH):
        await customer.stand(slot_id)
    other = await line.slot(app)
    while (partition_of(other) == partition_of(slot_id)) is not together:
        other = await line.slot(app)
    told = await line.customer(app, LENGTH).request(other)
    assert told["__typename"] == ("QueueFull" if together else "Ticket")


async def test_what_is_set_aside_takes_up_room_until_an_operator_decides(line: QueueScene) -> None:
    app = line.counter(length=LENGTH)
    slot_id = await line.slot(app, capacity=5)
    customers = line.customers(app, LENGTH)
    aside = keys(partition_of(slot_id))[2]
    entries: list[Any] = [line.redis.xadd(aside, {"reason": "?"}) for _ in range(LENGTH - 1)]
    await customers[0].stand(slot_id)
    assert (await customers[1].request(slot_id))["__typename"] == "QueueFull"
    line.redis.xdel(aside, *entries)
    await customers[1].stand(slot_id)


def _plain(ticket: Json) -> Json:
    return {name: value for name, value in ticket.items() if name != "__typename"}
