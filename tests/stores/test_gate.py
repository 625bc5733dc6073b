"""Callers who leave at any moment, and more of them than there are connections, harm nobody."""

import asyncio
import random
from collections.abc import AsyncIterator

import httpx
import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.desk import utc_now
from slotlock.domain.listing import SlotFilter, SlotOrder
from slotlock.stores import gate, mongo
from slotlock.stores.gate import Gate, GateTimeoutError
from slotlock.stores.ids import new_slot_id
from slotlock.stores.mongo import Database
from slotlock.stores.slots import Slots
from tests.domain.test_booking import slot
from tests.support.client import Client
from tests.support.kept import keep
from tests.support.offices import until
from tests.support.processes import AppProcess, database_url

LEAVERS = 3_000


@pytest.fixture
async def database(servers: Servers) -> AsyncIterator[Database]:
    """A database of the tests' own."""
    client, opened = mongo.connect(database_url(servers, "gate"))
    try:
        yield opened
    finally:
        await client.close()


@pytest.fixture
def slots(database: Database) -> Slots:
    """A store of slots."""
    return Slots(database)


async def test_mongodb_is_there_for_others_after_thousands_left_in_the_middle(
    slots: Slots, database: Database
) -> None:
    await slots.prepare()
    new, chance = slot(5, id=new_slot_id()), random.Random(7)
    await keep(database, new)

    def ask(number: int) -> asyncio.Task[object]:
        if number % 3:
            return asyncio.create_task(slots.look_at_roster(new.id))
        return asyncio.create_task(
            slots.page(SlotFilter(), SlotOrder.START_ASC, 100, None, utc_now())
        )

    for start in range(0, LEAVERS, 300):
        leaving = [ask(number) for number in range(start, start + 300)]
        for task in leaving:
            if chance.random() < 0.05:
                await asyncio.sleep(chance.random() / 100)
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
    async with asyncio.timeout(20):
        stayed = await asyncio.gather(*(slots.look_at_roster(new.id) for _ in range(50)))
    assert [one and one.id for one in stayed] == [new.id] * 50


async def test_no_more_are_let_in_than_the_gate_is_wide(slots: Slots) -> None:
    inside = most = 0
    narrow = Gate(3)

    async def operation() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    await asyncio.gather(*(narrow.carry(operation) for _ in range(50)))
    assert most == 3


async def test_whoever_would_wait_too_long_is_told_so_and_the_gate_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "LONGEST_WAIT_S", 0.01)
    narrow, done = Gate(1), asyncio.Event()
    first = asyncio.create_task(narrow.carry(done.wait))
    await asyncio.sleep(0)
    with pytest.raises(GateTimeoutError):
        await narrow.carry(done.wait)
    done.set()
    assert await first
    assert await narrow.carry(done.wait)


async def test_event_streams_dropped_at_any_moment_leave_the_app_as_it_was(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    query = "{ a: slots(first: 100) { nodes { id } } b: slots(first: 100) { nodes { title } } }"
    address = httpx.URL(app.url)
    head = "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    body = f'{{"query": "{query}"}}'
    request = f"{head}Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    chance = random.Random(11)

    async def drop() -> None:
        _, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request.encode())
        await writer.drain()
        await asyncio.sleep(chance.random() / 20)
        writer.transport.abort()

    for _ in range(15):
        await asyncio.gather(*(drop() for _ in range(40)))

    async def answers() -> bool:
        # Busy with what was under way, it may first say that MongoDB is not keeping up.
        answer = await Client(http, app.url).send("{ slots(first: 1) { nodes { id } } }")
        return bool(answer["data"])

    await until(answers, "the app answers as before")
