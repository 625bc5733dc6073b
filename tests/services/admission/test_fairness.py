"""Places go in order of arrival, and whoever sends more often than others gains nothing by it."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

import pytest

from slotlock.infrastructure.redis.keys import admission_lock, lock_keys
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json
from tests.support.clients.simultaneous_requests import send_simultaneously
from tests.support.polling import eventually
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    crowded_queue_deployment,
    queue_deployment,
    queue_partition,
)
from tests.support.queue.documents import REQUEST_BOOKING

__all__ = ["crowded_queue_deployment", "queue_deployment"]

PLACES, GREED = 20, 100


async def stand_one_by_one(
    deployment: QueueDeployment, apps: Sequence[AppProcess], slot_id: str
) -> list[Json]:
    """The tickets of everybody, by turns at the processes, one after the other."""
    return [
        await deployment.queue_client(apps[n % len(apps)], n).enqueue(slot_id)
        for n in range(len(deployment.user_tokens.members))
    ]


async def test_places_go_to_those_who_came_first_whoever_serves_them(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    apps = [crowded_queue_deployment.app(), crowded_queue_deployment.app()]
    slot_id = await crowded_queue_deployment.add_slot(apps[0], capacity=PLACES)
    tickets = await stand_one_by_one(crowded_queue_deployment, apps, slot_id)
    assert [ticket["position"] for ticket in tickets] == list(range(1, 201))
    for _ in range(2):
        crowded_queue_deployment.worker()
    codes = [
        await crowded_queue_deployment.queue_client(apps[0], n).wait_for_outcome_code(ticket["id"])
        for n, ticket in enumerate(tickets)
    ]
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)
    assert len(crowded_queue_deployment.consistent_booking_ids(slot_id)) == PLACES


async def test_those_who_come_while_others_are_served_are_served_after_them(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    apps = [crowded_queue_deployment.worker(), crowded_queue_deployment.worker()]
    slot_id = await crowded_queue_deployment.add_slot(apps[0], capacity=PLACES)
    codes = list[str]()
    for number in range(200):
        customer = crowded_queue_deployment.queue_client(apps[number % 2], number)
        asked = await customer.request_booking(slot_id)
        codes.append(asked["id"] if asked["__typename"] == "Ticket" else asked["code"])
    for number, told in enumerate(codes):
        if told.startswith("ticket_"):
            codes[number] = await crowded_queue_deployment.queue_client(
                apps[0], number
            ).wait_for_outcome_code(told)
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)


async def greed(
    deployment: QueueDeployment, apps: Sequence[AppProcess], slot_id: str, *, keys: bool
) -> list[Json]:
    """What one person is told who asks a hundred times at once, at each of the processes."""
    token = deployment.user_tokens.members[0]
    wishes: list[Json] = [{"slotId": slot_id} for _ in range(GREED)]
    for wish in wishes if keys else ():
        wish["idempotencyKey"] = secrets.token_hex(8)
    shots = [
        (apps[n % len(apps)].url, token, REQUEST_BOOKING, {"input": wish})
        for n, wish in enumerate(wishes)
    ]
    return await send_simultaneously(shots)


@pytest.mark.parametrize("keys", [False, True])
async def test_who_asks_a_hundred_times_stands_in_line_once_and_pushes_nobody_back(
    queue_deployment: QueueDeployment, keys: bool
) -> None:
    apps = [
        queue_deployment.frontend(max_queue_length=50),
        queue_deployment.frontend(max_queue_length=50),
    ]
    slot_id = await queue_deployment.add_slot(apps[0], capacity=3)
    ada, ben, cleo = queue_deployment.queue_clients(apps[0], 3)
    before = await ben.enqueue(slot_id)
    told = await greed(queue_deployment, apps, slot_id, keys=keys)
    assert {(ticket["id"], ticket["position"]) for ticket in told} == {(told[0]["id"], 2)}
    after = await cleo.enqueue(slot_id)
    assert (after["position"], queue_deployment.queue_length()) == (3, 3)
    queue_deployment.worker()
    for customer, ticket in ((ben, before), (ada, told[0]), (cleo, after)):
        assert await customer.wait_for_outcome_code(ticket["id"]) == "Booked"
    assert len(queue_deployment.consistent_booking_ids(slot_id)) == 3
    await queue_deployment.wait_until_empty()
    assert queue_deployment.stored_tickets() == {}


async def test_control_where_nobody_knows_who_stands_there_one_person_takes_the_line(
    queue_deployment: QueueDeployment,
) -> None:
    apps = [
        queue_deployment.frontend("existing-ticket", 50),
        queue_deployment.frontend("existing-ticket", 50),
    ]
    roomy, slot_id = (
        await queue_deployment.add_slot(apps[0], capacity=3),
        await queue_deployment.add_slot(apps[0], capacity=3),
    )
    told = await greed(queue_deployment, apps[:1], slot_id, keys=True)
    tickets = [each for each in told if each["__typename"] == "Ticket"]
    assert len({ticket["id"] for ticket in tickets}) == queue_deployment.queue_length() == 50
    assert (await queue_deployment.queue_client(apps[1], 1).request_booking(slot_id))[
        "__typename"
    ] == "QueueFull"
    queue_deployment.redis.flushdb()
    apps = [queue_deployment.frontend("existing-ticket")]
    await greed(queue_deployment, apps, roomy, keys=True)
    assert (await queue_deployment.queue_client(apps[0], 1).enqueue(roomy))["position"] == GREED + 1


async def test_who_asked_before_others_and_asks_again_keeps_their_place(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    ada, ben = queue_deployment.queue_clients(app, 2)
    first = await ada.enqueue(slot_id)
    await ben.enqueue(slot_id)
    for _ in range(3):
        assert await ada.enqueue(slot_id) == first
        assert await ada.enqueue(slot_id, idempotencyKey=secrets.token_hex(8)) == first


async def stands_for_the_lease(queue_deployment: QueueDeployment, slot_id: str) -> None:
    """Wait until another process waits to serve the part of the line that one serves."""
    waiting = lock_keys(admission_lock(queue_partition(slot_id))).queue

    async def waits() -> bool:
        return bool(queue_deployment.redis.zcard(waiting))

    await eventually(waits, "somebody who waits for the lease")


async def overtaking(
    queue_deployment: QueueDeployment,
    off: str,
    between: Callable[[QueueClient, str], Awaitable[None]],
) -> list[str]:
    """What Ada and then Ben are told who want one place, when whoever serves Ada is slow."""
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    ada, ben = queue_deployment.queue_clients(app, 2)
    slow = queue_deployment.stalled_worker(off)
    first = await ada.enqueue(slot_id)
    await asyncio.to_thread(slow.wait_until_reached)
    queue_deployment.worker(off)
    second = await ben.enqueue(slot_id)
    await between(ben, second["id"])
    slow.resume()
    return [
        await ada.wait_for_outcome_code(first["id"]),
        await ben.wait_for_outcome_code(second["id"]),
    ]


async def test_nobody_is_overtaken_while_whoever_serves_them_is_slow(
    queue_deployment: QueueDeployment,
) -> None:
    async def waits_for_its_turn(ben: QueueClient, ticket_id: str) -> None:
        seen = await ben.fetch_ticket(ticket_id)
        await stands_for_the_lease(queue_deployment, seen["slotId"])
        assert await ben.fetch_ticket(ticket_id) == seen

    assert await overtaking(queue_deployment, "", waits_for_its_turn) == ["Booked", "SLOT_FULL"]


async def test_control_with_consumers_side_by_side_who_came_later_overtakes(
    queue_deployment: QueueDeployment,
) -> None:
    async def is_served(ben: QueueClient, ticket_id: str) -> None:
        assert await ben.wait_for_outcome_code(ticket_id) == "Booked"

    assert await overtaking(queue_deployment, "queue-lease", is_served) == ["SLOT_FULL", "Booked"]
