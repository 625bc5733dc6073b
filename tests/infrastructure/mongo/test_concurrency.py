"""The concurrency limiter: cancelled callers, and many of them, do not harm others."""

import asyncio
import gc
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any

import httpx
import pymongo.lock
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.slots.listing import SlotFilter, SlotOrder, SlotSelection
from slotlock.infrastructure.mongo import concurrency_limiter
from slotlock.infrastructure.mongo.client import Database, open_database
from slotlock.infrastructure.mongo.concurrency_limiter import (
    WAIT_TIMEOUT_S,
    ConcurrencyLimiter,
    MongoOverloadedError,
    NestedOperationError,
    max_wait_s,
)
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync
from slotlock.infrastructure.request_deadline import (
    RESERVE_S,
    RequestDeadlines,
    within_deadline,
)
from slotlock.services.container import utc_now
from tests.support.apps.processes import AppProcess, database_url
from tests.support.clients.client import GraphQLTestClient
from tests.support.domain.builders import build_slot
from tests.support.polling import eventually
from tests.support.stores.slots import insert_new_slots

CANCELLED_CALLERS = 3_000


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a database of these tests."""
    async with open_database(database_url(servers, "limiter")) as opened:
        yield opened


@pytest.fixture
def slots(database: Database) -> SlotRepository:
    """Return the repository of slots in this database."""
    return SlotRepository(database)


async def test_mongodb_stays_usable_after_thousands_of_callers_were_cancelled(
    slots: SlotRepository, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Repositories(database).indexes.build_missing()
    new, rng = build_slot(5, id=new_slot_id()), random.Random(7)
    await insert_new_slots(database, new)

    def send_query(number: int) -> asyncio.Task[object]:
        if number % 3:
            return asyncio.create_task(slots.find_with_roster(new.id))
        return asyncio.create_task(
            slots.page(SlotFilter(), SlotOrder.START_ASC, 100, None, utc_now(), SlotSelection())
        )

    for start in range(0, CANCELLED_CALLERS, 300):
        tasks = [send_query(number) for number in range(start, start + 300)]
        for task in tasks:
            if rng.random() < 0.05:
                await asyncio.sleep(rng.random() / 100)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # The queries of the cancelled callers run first, for longer than 5 s on a busy machine.
    monkeypatch.setattr(concurrency_limiter, "WAIT_TIMEOUT_S", 20)
    async with asyncio.timeout(20):
        found = await asyncio.gather(*(slots.find_with_roster(new.id) for _ in range(50)))
    assert [each and each.id for each in found] == [new.id] * 50


async def lock_is_free_after_a_cancelled_wait() -> bool:
    """Cancel a caller of the driver just when it gets the lock again after its wait."""
    lock = pymongo.lock._async_create_lock()
    condition = pymongo.lock._async_create_condition(lock)

    async def wait_for_a_change() -> None:
        async with lock:
            await pymongo.lock._async_cond_wait(condition, 0.01)

    waiter = asyncio.create_task(wait_for_a_change())
    await asyncio.sleep(0)
    await lock.acquire()
    while not lock._waiters:
        await asyncio.sleep(0)
    waiter.cancel()
    lock.release()
    await asyncio.wait([waiter])
    for _ in range(5):
        await asyncio.sleep(0)
    return not lock.locked()


async def test_a_caller_that_is_cancelled_frees_the_lock_of_the_driver() -> None:
    assert await lock_is_free_after_a_cancelled_wait()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="wait_for is right since Python 3.12")
async def test_control_with_wait_for_of_python_311_the_lock_is_never_free_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pymongo.lock, "wait_for", asyncio.wait_for)
    assert not await lock_is_free_after_a_cancelled_wait()


async def test_no_more_operations_run_at_once_than_the_limit() -> None:
    running = most = 0
    limiter = ConcurrencyLimiter(3)

    async def operation() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await asyncio.gather(*(limiter.run(operation) for _ in range(50)))
    assert most == 3


async def test_a_wait_that_is_too_long_is_an_error_and_the_limiter_stays_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrency_limiter, "WAIT_TIMEOUT_S", 0.01)
    limiter, done = ConcurrencyLimiter(1), asyncio.Event()
    first = asyncio.create_task(limiter.run(done.wait))
    await asyncio.sleep(0)
    with pytest.raises(MongoOverloadedError):
        await limiter.run(done.wait)
    done.set()
    assert await first
    assert await limiter.run(done.wait)


async def test_a_request_that_waits_for_mongodb_leaves_time_for_the_operation() -> None:
    assert max_wait_s() == WAIT_TIMEOUT_S
    deadline = RequestDeadlines().begin()
    with within_deadline():
        deadline.at = monotonic() + RESERVE_S + 4.0
        assert max_wait_s() <= 3.0


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


# More iterations of the event loop than sending a query takes.
ITERATIONS = 30


async def were_cancelled(query: Callable[[], Coroutine[Any, Any, object]]) -> list[bool]:
    """Cancel a query after each number of iterations. Return whether each one ended by it."""
    cancelled = []
    for iterations in range(1, ITERATIONS):
        task = asyncio.create_task(query())
        for _ in range(iterations):
            await asyncio.sleep(0)
        if not task.cancel():
            break  # it has its reply already
        await asyncio.wait([task])
        cancelled.append(task.cancelled())
    return cancelled


@pytest.mark.parametrize("caller", ["sweeper", "streams"])
async def test_a_background_query_ends_at_any_moment_when_it_is_cancelled(
    database: Database, caller: str
) -> None:
    groups, sessions = WaitlistGroupSync(database), SessionRepository(database)
    queries: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "sweeper": lambda: groups.sync_pending(utc_now(), utc_now()),
        "streams": lambda: sessions.find_roles(["no session"]),
    }
    await queries[caller]()  # opens a connection
    cancelled = await were_cancelled(queries[caller])
    assert cancelled
    assert all(cancelled)


# PyMongo leaks the connections on which it was cancelled.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_control_without_the_limiter_a_cancellation_is_lost_while_a_query_is_sent(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run_directly(
        self: ConcurrencyLimiter, operation: Callable[[], Awaitable[object]]
    ) -> object:
        return await operation()

    monkeypatch.setattr(ConcurrencyLimiter, "run", run_directly)
    groups = WaitlistGroupSync(database)
    await groups.sync_pending(utc_now(), utc_now())
    cancelled = await were_cancelled(lambda: groups.sync_pending(utc_now(), utc_now()))
    gc.collect()
    # From Python 3.12 on, `asyncio.wait_for` loses no cancellation.
    assert not all(cancelled) or sys.version_info >= (3, 12)


async def test_event_streams_that_are_dropped_at_any_moment_do_not_harm_the_app(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    query = "{ a: slots(first: 100) { nodes { id } } b: slots(first: 100) { nodes { title } } }"
    url, rng = httpx.URL(app.url), random.Random(11)
    head = "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    body = f'{{"query": "{query}"}}'
    request = f"{head}Accept: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n{body}"

    async def drop_stream() -> None:
        _, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(request.encode())
        await writer.drain()
        await asyncio.sleep(rng.random() / 20)
        writer.transport.abort()

    async def responds() -> bool:
        # While the queries of the dropped streams run, the response may be that MongoDB is busy.
        client = GraphQLTestClient(http, app.url)
        response = await client.send("{ slots(first: 1) { nodes { id } } }")
        return bool(response.get("data"))

    for _ in range(6):
        await asyncio.gather(*(drop_stream() for _ in range(40)))
        await eventually(responds, "the app responds as before")
