"""Places go to requests in order of arrival, and sending more requests is no advantage."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

import pytest

from slotlock.infrastructure.redis.keys import admission_lock, lock_keys
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json
from tests.support.polling import eventually
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    crowded_queue_deployment,
    queue_deployment,
    queue_partition,
)
from tests.support.queue.documents import REQUEST_BOOKING
from tests.support.transport.simultaneous_requests import send_simultaneously

__all__ = ["crowded_queue_deployment", "queue_deployment"]

MEMBERS, PLACES, REPEATS = 60, 20, 100
FIRST_BOOKED = ["Booked"] * PLACES + ["SLOT_FULL"] * (MEMBERS - PLACES)


async def test_the_first_queued_requests_are_booked_whichever_worker_processes_them(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    deployment = crowded_queue_deployment
    apps = [deployment.app(), deployment.app()]
    slot_id = await deployment.add_slot(apps[0], capacity=PLACES)
    tickets = [
        await deployment.queue_client(apps[n % 2], n).enqueue(slot_id) for n in range(MEMBERS)
    ]
    assert [ticket["position"] for ticket in tickets] == list(range(1, MEMBERS + 1))
    for _ in range(2):
        deployment.worker()
    codes = [
        await deployment.queue_client(apps[0], n).wait_for_outcome_code(ticket["id"])
        for n, ticket in enumerate(tickets)
    ]
    assert codes == FIRST_BOOKED
    assert len(deployment.consistent_booking_ids(slot_id)) == PLACES


async def test_requests_that_arrive_while_others_are_processed_come_after_them(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    deployment = crowded_queue_deployment
    apps = [deployment.worker(), deployment.worker()]
    slot_id = await deployment.add_slot(apps[0], capacity=PLACES)
    outcomes = [
        await deployment.queue_client(apps[n % 2], n).request_booking(slot_id)
        for n in range(MEMBERS)
    ]
    codes = [
        await deployment.queue_client(apps[0], n).wait_for_outcome_code(outcome["id"])
        if outcome["__typename"] == "Ticket"
        else outcome["code"]
        for n, outcome in enumerate(outcomes)
    ]
    assert codes == FIRST_BOOKED


async def request_repeatedly(
    deployment: QueueDeployment, apps: Sequence[AppProcess], slot_id: str, *, with_keys: bool
) -> list[Json]:
    """Send 100 simultaneous requests of the first member to these apps."""
    token = deployment.user_tokens.members[0]
    inputs: list[Json] = [{"slotId": slot_id} for _ in range(REPEATS)]
    for input_ in inputs if with_keys else ():
        input_["idempotencyKey"] = secrets.token_hex(8)
    requests = [
        (apps[n % len(apps)].url, token, REQUEST_BOOKING, {"input": input_})
        for n, input_ in enumerate(inputs)
    ]
    return await send_simultaneously(requests)


@pytest.mark.parametrize("with_keys", [False, True])
async def test_a_user_who_sends_100_requests_is_queued_once(
    queue_deployment: QueueDeployment, with_keys: bool
) -> None:
    apps = [queue_deployment.frontend(max_queue_length=50) for _ in range(2)]
    slot_id = await queue_deployment.add_slot(apps[0], capacity=3)
    repeating, earlier, later = queue_deployment.queue_clients(apps[0], 3)
    first = await earlier.enqueue(slot_id)
    repeated = await request_repeatedly(queue_deployment, apps, slot_id, with_keys=with_keys)
    assert {(ticket["id"], ticket["position"]) for ticket in repeated} == {(repeated[0]["id"], 2)}
    last = await later.enqueue(slot_id)
    assert (last["position"], queue_deployment.queue_length()) == (3, 3)
    queue_deployment.worker()
    for client, ticket in ((earlier, first), (repeating, repeated[0]), (later, last)):
        assert await client.wait_for_outcome_code(ticket["id"]) == "Booked"
    assert len(queue_deployment.consistent_booking_ids(slot_id)) == 3
    await queue_deployment.wait_until_empty()
    assert queue_deployment.stored_tickets() == {}


async def test_control_without_the_check_for_an_existing_ticket_one_user_fills_the_queue(
    queue_deployment: QueueDeployment,
) -> None:
    apps = [queue_deployment.frontend("existing-ticket", 50) for _ in range(2)]
    slot_ids = [await queue_deployment.add_slot(apps[0], capacity=3) for _ in range(2)]
    outcomes = await request_repeatedly(queue_deployment, apps[:1], slot_ids[0], with_keys=True)
    tickets = [outcome for outcome in outcomes if outcome["__typename"] == "Ticket"]
    assert len({ticket["id"] for ticket in tickets}) == queue_deployment.queue_length() == 50
    other = queue_deployment.queue_client(apps[1], 1)
    assert (await other.request_booking(slot_ids[0]))["__typename"] == "QueueFull"
    queue_deployment.redis.flushdb()
    app = queue_deployment.frontend("existing-ticket")
    await request_repeatedly(queue_deployment, [app], slot_ids[1], with_keys=True)
    last = await queue_deployment.queue_client(app, 1).enqueue(slot_ids[1])
    assert last["position"] == REPEATS + 1


async def test_a_repeated_request_retains_its_position(queue_deployment: QueueDeployment) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    first, second = queue_deployment.queue_clients(app, 2)
    ticket = await first.enqueue(slot_id)
    await second.enqueue(slot_id)
    for _ in range(3):
        assert await first.enqueue(slot_id) == ticket
        assert await first.enqueue(slot_id, idempotencyKey=secrets.token_hex(8)) == ticket


async def outcomes_with_slow_worker(
    deployment: QueueDeployment,
    without_guards: str,
    check_second: Callable[[QueueClient, str], Awaitable[None]],
) -> list[str]:
    """Request one place twice, while the worker of the first request pauses.

    Returns both outcomes. `check_second` runs during the pause, with a second worker running.
    """
    app = deployment.app()
    slot_id = await deployment.add_slot(app)
    first, second = deployment.queue_clients(app, 2)
    pause_point = deployment.stalled_worker(without_guards)
    first_ticket = await first.enqueue(slot_id)
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.worker(without_guards)
    second_ticket = await second.enqueue(slot_id)
    await check_second(second, second_ticket["id"])
    pause_point.resume()
    return [
        await first.wait_for_outcome_code(first_ticket["id"]),
        await second.wait_for_outcome_code(second_ticket["id"]),
    ]


async def test_a_later_request_is_not_processed_while_an_earlier_one_is_slow(
    queue_deployment: QueueDeployment,
) -> None:
    async def stays_queued(client: QueueClient, ticket_id: str) -> None:
        ticket = await client.fetch_ticket(ticket_id)
        waiters = lock_keys(admission_lock(queue_partition(ticket["slotId"]))).queue

        await eventually(
            lambda: bool(queue_deployment.redis.zcard(waiters)), "a worker that waits for the lease"
        )
        assert await client.fetch_ticket(ticket_id) == ticket

    outcomes = await outcomes_with_slow_worker(queue_deployment, "", stays_queued)
    assert outcomes == ["Booked", "SLOT_FULL"]


async def test_control_without_the_queue_lease_a_later_request_is_processed_first(
    queue_deployment: QueueDeployment,
) -> None:
    async def is_booked(client: QueueClient, ticket_id: str) -> None:
        assert await client.wait_for_outcome_code(ticket_id) == "Booked"

    outcomes = await outcomes_with_slow_worker(queue_deployment, "queue-lease", is_booked)
    assert outcomes == ["SLOT_FULL", "Booked"]
