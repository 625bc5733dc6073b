"""Live tickets: places as they come nearer, and the outcome once, however many watch."""

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


async def test_who_watches_is_told_each_nearer_place_and_then_the_outcome(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app, capacity=1)
    first, second, third = queue_deployment.queue_clients(app, 3)
    stage = queue_deployment.stalled_worker(pause_at="batches")
    await first.enqueue(slot_id)
    await asyncio.to_thread(stage.wait_until_reached)
    await second.enqueue(slot_id)
    ticket = await third.enqueue(slot_id)
    async with open_websocket(app, third.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket["id"])
        assert [(await opened.next_result())["position"]] == [3]
        stage.resume()
        await asyncio.to_thread(stage.wait_until_reached)  # with the other two
        nearer = await opened.next_result()
        assert (nearer["status"], nearer["position"], nearer["outcome"]) == ("QUEUED", 2, None)
        stage.resume()
        answered = await opened.next_result()
        assert (answered["status"], answered["position"]) == ("ANSWERED", None)
        assert answered["outcome"]["code"] == "SLOT_FULL"
        assert (await opened.receive())["type"] == "complete"


async def watch(
    app: AppProcess, customer: QueueClient, ticket_id: str, begun: list[str]
) -> list[Json]:
    """All that one of many is told; `begun` when they were told the first."""
    async with open_websocket(app, customer.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
        states = [await opened.next_result()]
        begun.append(ticket_id)
        while (message := await opened.receive())["type"] == "next":
            states.append(message["payload"]["data"]["ticket"])
    assert message == {"id": "1", "type": "complete"}
    return states


async def test_200_who_watch_are_each_told_their_outcome_once_by_both_processes(
    crowded_queue_deployment: QueueDeployment,
) -> None:
    apps = [crowded_queue_deployment.app(), crowded_queue_deployment.app()]
    slot_id = await crowded_queue_deployment.add_slot(apps[0], capacity=20)
    customers = [crowded_queue_deployment.queue_client(apps[n % 2], n) for n in range(200)]
    tickets = [(await customer.enqueue(slot_id))["id"] for customer in customers]
    begun = list[str]()
    watching = [
        asyncio.create_task(watch(apps[n % 2], customer, ticket, begun))
        for n, (customer, ticket) in enumerate(zip(customers, tickets, strict=True))
    ]

    async def all_watch() -> bool:
        return len(begun) == len(tickets)

    await eventually(all_watch, "everybody watches")
    crowded_queue_deployment.worker()
    told = await asyncio.gather(*watching)
    assert [states[0]["position"] for states in told] == list(range(1, 201))
    ends = [[state for state in states if state["status"] == "ANSWERED"] for states in told]
    assert [len(end) for end in ends] == [1] * 200
    names = [end[0]["outcome"]["__typename"] for end in ends]
    assert names == ["Booked"] * 20 + ["SlotFull"] * 180


async def test_who_watches_twice_is_told_twice(queue_deployment: QueueDeployment) -> None:
    app = queue_deployment.app()
    slot_id, ada = await queue_deployment.add_slot(app), queue_deployment.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id)
    begun = list[str]()
    watching = [asyncio.create_task(watch(app, ada, ticket["id"], begun)) for _ in range(2)]

    async def both_watch() -> bool:
        return len(begun) == 2

    await eventually(both_watch, "both watch")
    queue_deployment.worker()
    one, other = await asyncio.gather(*watching)
    assert one[-1] == other[-1]
    assert one[-1]["status"] == "ANSWERED"
