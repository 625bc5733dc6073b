"""Callers who leave at any moment, and more of them than there are connections, harm nobody."""

import asyncio
import gc
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.infrastructure.mongo import concurrency
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.concurrency import (
    ConcurrencyLimiter,
    MongoOverloadedError,
    NestedOperationError,
)
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync
from slotlock.services.container import utc_now
from tests.support.apps.processes import AppProcess, database_url
from tests.support.clients.client import GraphQLTestClient
from tests.support.domain.builders import build_slot
from tests.support.polling import eventually
from tests.support.stores.slots import insert_new_slots

CANCELLED_CALLERS = 3_000


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database of the tests' own."""
    client, opened = connect(database_url(servers, "gate"))
    try:
        yield opened
    finally:
        await client.close()


@pytest.fixture
def slots(database: Database) -> SlotRepository:
    """A store of slots."""
    return SlotRepository(database)


async def test_mongodb_stays_usable_after_thousands_of_callers_were_cancelled(
    slots: SlotRepository, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await slots.create_indexes()
    new, rng = build_slot(5, id=new_slot_id()), random.Random(7)
    await insert_new_slots(database, new)

    def send_query(number: int) -> asyncio.Task[object]:
        if number % 3:
            return asyncio.create_task(slots.find_with_roster(new.id))
        return asyncio.create_task(
            slots.page(SlotFilter(), SlotOrder.START_ASC, 100, None, utc_now())
        )

    for start in range(0, CANCELLED_CALLERS, 300):
        tasks = [send_query(number) for number in range(start, start + 300)]
        for task in tasks:
            if rng.random() < 0.05:
                await asyncio.sleep(rng.random() / 100)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The queries of the cancelled callers run first, for longer than 5 s on a busy machine.
    monkeypatch.setattr(concurrency, "WAIT_TIMEOUT_S", 20)
    async with asyncio.timeout(20):
        found = await asyncio.gather(*(slots.find_with_roster(new.id) for _ in range(50)))
    assert [each and each.id for each in found] == [new.id] * 50


async def test_no_more_are_let_in_than_the_gate_is_wide(slots: SlotRepository) -> None:
    inside = most = 0
    narrow = ConcurrencyLimiter(3)

    async def operation() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    await asyncio.gather(*(narrow.run(operation) for _ in range(50)))
    assert most == 3


async def test_whoever_would_wait_too_long_is_told_so_and_the_gate_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrency, "WAIT_TIMEOUT_S", 0.01)
    narrow, done = ConcurrencyLimiter(1), asyncio.Event()
    first = asyncio.create_task(narrow.run(done.wait))
    await asyncio.sleep(0)
    with pytest.raises(MongoOverloadedError):
        await narrow.run(done.wait)
    done.set()
    assert await first
    assert await narrow.run(done.wait)


async def test_an_operation_that_waits_for_its_own_limiter_is_an_error() -> None:
    outer = ConcurrencyLimiter(3)
    inner = ConcurrencyLimiter(2, within=outer)

    async def nested() -> bool:
        return await inner.run(lambda: outer.run(done))

    async def done() -> bool:
        return True

    assert await outer.run(lambda: ConcurrencyLimiter(1).run(done))
    with pytest.raises(NestedOperationError):
        await nested()
    assert await inner.run(done)


# In how many rounds of the loop a question is sent, and more.
ROUNDS = 30


async def ended_when_cancelled(ask: Callable[[], Coroutine[Any, Any, object]]) -> list[bool]:
    """Whether a caller who is cancelled in each of the first rounds of the loop does end so."""
    received = []
    for rounds in range(1, ROUNDS):
        asking = asyncio.create_task(ask())
        for _ in range(rounds):
            await asyncio.sleep(0)
        if not asking.cancel():
            break  # it was answered by then
        await asyncio.wait([asking])
        received.append(asking.cancelled())
    return received


@pytest.mark.parametrize("whose", ["sweeper", "streams"])
async def test_what_asks_in_the_background_ends_whenever_it_is_cancelled(
    database: Database, whose: str
) -> None:
    groups, sessions = WaitlistGroupSync(database), SessionRepository(database)
    asks: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "sweeper": lambda: groups.sync_pending(utc_now(), utc_now()),
        "streams": lambda: sessions.find_roles(["nobody's"]),
    }
    await asks[whose]()  # from now on there is a connection
    received = await ended_when_cancelled(asks[whose])
    assert received
    assert all(received)


# PyMongo leaves the connections behind on which it was cancelled.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_control_without_the_gate_a_cancel_is_lost_while_a_question_is_sent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def let_in(
        self: ConcurrencyLimiter, operation: Callable[[], Awaitable[object]]
    ) -> object:
        return await operation()

    monkeypatch.setattr(ConcurrencyLimiter, "run", let_in)
    groups = WaitlistGroupSync(database)
    await groups.sync_pending(utc_now(), utc_now())
    received = await ended_when_cancelled(lambda: groups.sync_pending(utc_now(), utc_now()))
    gc.collect()
    assert not all(received) or sys.version_info >= (3, 12)  # where `asyncio.wait_for` loses none


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
        answer = await GraphQLTestClient(http, app.url).send("{ slots(first: 1) { nodes { id } } }")
        return bool(answer["data"])

    await eventually(answers, "the app answers as before")
