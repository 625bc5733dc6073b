"""Live tickets: positions as they change, and the outcome once, with many subscriptions."""

import asyncio

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import Json, open_websocket
from tests.support.polling import eventually
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    crowded_queue_deployment,
    queue_deployment,
)
from tests.support.queue.documents import WATCH_TICKET

__all__ = ["crowded_queue_deployment", "queue_deployment"]

MEMBERS, PLACES = 60, 20


async def test_a_subscription_reports_each_new_position_and_then_the_outcome(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app, capacity=1)
    first, second, third = queue_deployment.queue_clients(app, 3)
    pause_point = queue_deployment.stalled_worker(pause_at="batches")
    await first.enqueue(slot_id)
    await asyncio.to_thread(pause_point.wait_until_reached)
    await second.enqueue(slot_id)
    ticket = await third.enqueue(slot_id)
    async with open_websocket(app, third.token) as websocket:
        await websocket.subscribe("1", WATCH_TICKET, id=ticket["id"])
        assert (await websocket.next_result())["position"] == 3
        pause_point.resume()
        await asyncio.to_thread(pause_point.wait_until_reached)  # with the other two
        closer = await websocket.next_result()
        assert (closer["status"], closer["position"], closer["outcome"]) == ("QUEUED", 2, None)
        pause_point.resume()
        answered = await websocket.next_result()
        assert (answered["status"], answered["position"]) == ("ANSWERED", None)
        assert answered["outcome"]["code"] == "SLOT_FULL"
        assert (await websocket.receive())["type"] == "complete"


async def watch(
    app: AppProcess, client: QueueClient, ticket_id: str, started: list[str]
) -> list[Json]:
    """Return all states of a ticket. Appends it to `started` after the first one."""
    async with open_websocket(app, client.token) as websocket:
        await websocket.subscribe("1", WATCH_TICKET, id=ticket_id)
        states = [await websocket.next_result()]
        started.append(ticket_id)
        while (message := await websocket.receive())["type"] == "next":
            states.append(message["payload"]["data"]["ticket"])
    assert message == {"id": "1", "type": "complete"}
    return states


async def wait_for_starts(started: list[str], count: int) -> None:
    """Wait until this many subscriptions have sent a state."""
    await eventually(lambda: len(started) == count, "all subscriptions started")


async def test_60_subscriptions_at_two_processes_report_each_outcome_once(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    deployment = crowded_queue_deployment
    apps = [deployment.app(), deployment.app()]
    slot_id = await deployment.add_slot(apps[0], capacity=PLACES)
    clients = [deployment.queue_client(apps[n % 2], n) for n in range(MEMBERS)]
    ticket_ids = [(await client.enqueue(slot_id))["id"] for client in clients]
    started = list[str]()
    watching = [
        asyncio.create_task(watch(apps[n % 2], client, ticket_id, started))
        for n, (client, ticket_id) in enumerate(zip(clients, ticket_ids, strict=True))
    ]
    await wait_for_starts(started, MEMBERS)
    deployment.worker()
    histories = await asyncio.gather(*watching)
    assert [states[0]["position"] for states in histories] == list(range(1, MEMBERS + 1))
    answered = [
        [state for state in states if state["status"] == "ANSWERED"] for states in histories
    ]
    assert [len(states) for states in answered] == [1] * MEMBERS
    names = [states[0]["outcome"]["__typename"] for states in answered]
    assert names == ["Booked"] * PLACES + ["SlotFull"] * (MEMBERS - PLACES)


async def test_two_subscriptions_to_one_ticket_both_report_the_outcome(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id, client = await queue_deployment.add_slot(app), queue_deployment.queue_client(app, 0)
    ticket = await client.enqueue(slot_id)
    started = list[str]()
    watching = [asyncio.create_task(watch(app, client, ticket["id"], started)) for _ in range(2)]
    await wait_for_starts(started, 2)
    queue_deployment.worker()
    first, second = await asyncio.gather(*watching)
    assert first[-1] == second[-1]
    assert first[-1]["status"] == "ANSWERED"
