"""Places go in order of arrival, and whoever sends more often than others gains nothing by it."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

import pytest

from slotlock.infrastructure.redis.keys import admission_lock, lock_keys
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json
from tests.support.clients.simultaneous_requests import send_simultaneously
from tests.support.queue.tickets import (
    REQUEST_FULL_TICKET,
    QueueClient,
    QueueDeployment,
    crowded,
    line,
    queue_partition,
)
from tests.support.stores.lock_nodes import eventually

__all__ = ["crowded", "line"]

PLACES, GREED = 20, 100


async def stand_one_by_one(
    scene: QueueDeployment, apps: Sequence[AppProcess], slot_id: str
) -> list[Json]:
    """The tickets of everybody, by turns at the processes, one after the other."""
    return [
        await scene.queue_client(apps[n % len(apps)], n).enqueue(slot_id)
        for n in range(len(scene.user_tokens.members))
    ]


async def test_places_go_to_those_who_came_first_whoever_serves_them(
    crowded: QueueDeployment,
) -> None:
    apps = [crowded.app(), crowded.app()]
    slot_id = await crowded.add_slot(apps[0], capacity=PLACES)
    tickets = await stand_one_by_one(crowded, apps, slot_id)
    assert [ticket["position"] for ticket in tickets] == list(range(1, 201))
    for _ in range(2):
        crowded.worker()
    codes = [
        await crowded.queue_client(apps[0], n).wait_for_outcome_code(ticket["id"])
        for n, ticket in enumerate(tickets)
    ]
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)
    assert len(crowded.consistent_booking_ids(slot_id)) == PLACES


async def test_those_who_come_while_others_are_served_are_served_after_them(
    crowded: QueueDeployment,
) -> None:
    apps = [crowded.worker(), crowded.worker()]
    slot_id = await crowded.add_slot(apps[0], capacity=PLACES)
    codes = list[str]()
    for number in range(200):
        customer = crowded.queue_client(apps[number % 2], number)
        asked = await customer.request_booking(slot_id)
        codes.append(asked["id"] if asked["__typename"] == "Ticket" else asked["code"])
    for number, told in enumerate(codes):
        if told.startswith("ticket_"):
            codes[number] = await crowded.queue_client(apps[0], number).wait_for_outcome_code(told)
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)


async def greed(
    scene: QueueDeployment, apps: Sequence[AppProcess], slot_id: str, *, keys: bool
) -> list[Json]:
    """What one person is told who asks a hundred times at once, at each of the processes."""
    token = scene.user_tokens.members[0]
    wishes: list[Json] = [{"slotId": slot_id} for _ in range(GREED)]
    for wish in wishes if keys else ():
        wish["idempotencyKey"] = secrets.token_hex(8)
    shots = [
        (apps[n % len(apps)].url, token, REQUEST_FULL_TICKET, {"input": wish})
        for n, wish in enumerate(wishes)
    ]
    return await send_simultaneously(shots)


@pytest.mark.parametrize("keys", [False, True])
async def test_who_asks_a_hundred_times_stands_in_line_once_and_pushes_nobody_back(
    line: QueueDeployment, keys: bool
) -> None:
    apps = [line.frontend(max_queue_length=50), line.frontend(max_queue_length=50)]
    slot_id = await line.add_slot(apps[0], capacity=3)
    ada, ben, cleo = line.queue_clients(apps[0], 3)
    before = await ben.enqueue(slot_id)
    told = await greed(line, apps, slot_id, keys=keys)
    assert {(ticket["id"], ticket["position"]) for ticket in told} == {(told[0]["id"], 2)}
    after = await cleo.enqueue(slot_id)
    assert (after["position"], line.queue_length()) == (3, 3)
    line.worker()
    for customer, ticket in ((ben, before), (ada, told[0]), (cleo, after)):
        assert await customer.wait_for_outcome_code(ticket["id"]) == "Booked"
    assert len(line.consistent_booking_ids(slot_id)) == 3
    await line.wait_until_empty()
    assert line.stored_tickets() == {}


async def test_control_where_nobody_knows_who_stands_there_one_person_takes_the_line(
    line: QueueDeployment,
) -> None:
    apps = [line.frontend("claim", 50), line.frontend("claim", 50)]
    roomy, slot_id = (
        await line.add_slot(apps[0], capacity=3),
        await line.add_slot(apps[0], capacity=3),
    )
    told = await greed(line, apps[:1], slot_id, keys=True)
    tickets = [each for each in told if each["__typename"] == "Ticket"]
    assert len({ticket["id"] for ticket in tickets}) == line.queue_length() == 50
    assert (await line.queue_client(apps[1], 1).request_booking(slot_id))[
        "__typename"
    ] == "QueueFull"
    line.redis.flushdb()
    apps = [line.frontend("claim")]
    await greed(line, apps, roomy, keys=True)
    assert (await line.queue_client(apps[0], 1).enqueue(roomy))["position"] == GREED + 1


async def test_who_asked_before_others_and_asks_again_keeps_their_place(
    line: QueueDeployment,
) -> None:
    app = line.app()
    slot_id = await line.add_slot(app)
    ada, ben = line.queue_clients(app, 2)
    first = await ada.enqueue(slot_id)
    await ben.enqueue(slot_id)
    for _ in range(3):
        assert await ada.enqueue(slot_id) == first
        assert await ada.enqueue(slot_id, idempotencyKey=secrets.token_hex(8)) == first


async def stands_for_the_lease(line: QueueDeployment, slot_id: str) -> None:
    """Wait until another process waits to serve the part of the line that one serves."""
    waiting = lock_keys(admission_lock(queue_partition(slot_id))).queue

    async def waits() -> bool:
        return bool(line.redis.zcard(waiting))

    await eventually(waits, "somebody who waits for the lease")


async def overtaking(
    line: QueueDeployment, off: str, between: Callable[[QueueClient, str], Awaitable[None]]
) -> list[str]:
    """What Ada and then Ben are told who want one place, when whoever serves Ada is slow."""
    app = line.app()
    slot_id = await line.add_slot(app)
    ada, ben = line.queue_clients(app, 2)
    slow = line.stalled_worker(off)
    first = await ada.enqueue(slot_id)
    await asyncio.to_thread(slow.wait_until_reached)
    line.worker(off)
    second = await ben.enqueue(slot_id)
    await between(ben, second["id"])
    slow.resume()
    return [
        await ada.wait_for_outcome_code(first["id"]),
        await ben.wait_for_outcome_code(second["id"]),
    ]


async def test_nobody_is_overtaken_while_whoever_serves_them_is_slow(line: QueueDeployment) -> None:
    async def waits_for_its_turn(ben: QueueClient, ticket_id: str) -> None:
        seen = await ben.fetch_ticket(ticket_id)
        await stands_for_the_lease(line, seen["slotId"])
        assert await ben.fetch_ticket(ticket_id) == seen

    assert await overtaking(line, "", waits_for_its_turn) == ["Booked", "SLOT_FULL"]


async def test_control_with_consumers_side_by_side_who_came_later_overtakes(
    line: QueueDeployment,
) -> None:
    async def is_served(ben: QueueClient, ticket_id: str) -> None:
        assert await ben.wait_for_outcome_code(ticket_id) == "Booked"

    assert await overtaking(line, "lease", is_served) == ["SLOT_FULL", "Booked"]
