"""Live tickets: places as they come nearer, and the outcome once, however many watch."""

import asyncio

from tests.support.client import Json, socket
from tests.support.offices import until
from tests.support.processes import AppProcess
from tests.support.tickets import WATCH_TICKET, Customer, QueueScene, crowded, line

__all__ = ["crowded", "line"]


async def test_who_watches_is_told_each_nearer_place_and_then_the_outcome(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app, capacity=1)
    first, second, third = line.customers(app, 3)
    stage = line.slow_worker(pause="batches")
    await first.stand(slot_id)
    await asyncio.to_thread(stage.wait_until_reached)
    await second.stand(slot_id)
    ticket = await third.stand(slot_id)
    async with socket(app, third.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket["id"])
        assert [(await opened.next())["place"]] == [3]
        stage.go()
        await asyncio.to_thread(stage.wait_until_reached)  # with the other two
        nearer = await opened.next()
        assert (nearer["status"], nearer["place"], nearer["outcome"]) == ("QUEUED", 2, None)
        stage.go()
        answered = await opened.next()
        assert (answered["status"], answered["place"]) == ("ANSWERED", None)
        assert answered["outcome"]["code"] == "SLOT_FULL"
        assert (await opened.receive())["type"] == "complete"


async def watch(
    app: AppProcess, customer: Customer, ticket_id: str, begun: list[str]
) -> list[Json]:
    """All that one of many is told; `begun` when they were told the first."""
    async with socket(app, customer.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
        states = [await opened.next()]
        begun.append(ticket_id)
        while (message := await opened.receive())["type"] == "next":
            states.append(message["payload"]["data"]["ticket"])
    assert message == {"id": "1", "type": "complete"}
    return states


async def test_200_who_watch_are_each_told_their_outcome_once_by_both_processes(
    crowded: QueueScene,
) -> None:
    apps = [crowded.app(), crowded.app()]
    slot_id = await crowded.slot(apps[0], capacity=20)
    customers = [crowded.customer(apps[n % 2], n) for n in range(200)]
    tickets = [(await customer.stand(slot_id))["id"] for customer in customers]
    begun = list[str]()
    watching = [
        asyncio.create_task(watch(apps[n % 2], customer, ticket, begun))
        for n, (customer, ticket) in enumerate(zip(customers, tickets, strict=True))
    ]

    async def all_watch() -> bool:
        return len(begun) == len(tickets)

    await until(all_watch, "everybody watches")
    crowded.worker()
    told = await asyncio.gather(*watching)
    assert [states[0]["place"] for states in told] == list(range(1, 201))
    ends = [[state for state in states if state["status"] == "ANSWERED"] for states in told]
    assert [len(end) for end in ends] == [1] * 200
    names = [end[0]["outcome"]["__typename"] for end in ends]
    assert names == ["Booked"] * 20 + ["SlotFull"] * 180


async def test_who_watches_twice_is_told_twice(line: QueueScene) -> None:
    app = line.app()
    slot_id, ada = await line.slot(app), line.customer(app, 0)
    ticket = await ada.stand(slot_id)
    begun = list[str]()
    watching = [asyncio.create_task(watch(app, ada, ticket["id"], begun)) for _ in range(2)]

    async def both_watch() -> bool:
        return len(begun) == 2

    await until(both_watch, "both watch")
    line.worker()
    one, other = await asyncio.gather(*watching)
    assert one[-1] == other[-1]
    assert one[-1]["status"] == "ANSWERED"
