"""Tickets that came and went leave nothing behind, in the process, on its board or in Redis."""

import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TICKET_TTL, Ticket
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, Role
from slotlock.graphql.core.ids import ticket_global_id
from slotlock.graphql.execution.executor import execute_stream
from slotlock.graphql.transport.server import GraphQLServer
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.booking.book import BookingOptions
from slotlock.services.container import Services, utc_now
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import Json
from tests.support.domain.builders import build_slot
from tests.support.queue.deployment import serve_queued_requests, with_own_redis_database
from tests.support.queue.documents import WATCH_TICKET

TICKETS = 100
MOST_ROUNDS = 6


class Counter:
    """A process's own rooms, in which somebody asks and watches, and the test serves."""

    def __init__(self, server: GraphQLServer, callers: list[Caller]) -> None:
        self.server = server
        self.services: Services = server.services
        self.callers = callers
        self.slot_id = SlotId("")

    async def open_slot(self, capacity: int) -> None:
        """A slot that begins in two days."""
        self.slot_id = new_slot_id()
        made = build_slot(capacity, id=self.slot_id, start=utc_now() + 2 * TICKET_TTL)
        assert check_written(
            await self.services.slot_writer.commit(ChangeSet((), new_slots=(made,)))
        )

    async def stand(self, number: int) -> Ticket:
        """A ticket of one of the people."""
        caller = self.callers[number]
        received = await request_booking(
            self.services, caller, self.slot_id, caller.user_id, BookingOptions()
        )
        assert isinstance(received, Ticket)
        return received

    def watch(self, number: int, ticket: Ticket) -> AsyncGenerator[Any, None]:
        """What this user is received of it."""
        operation = self.server.document_cache.resolve_operation(WATCH_TICKET, None)
        context = self.server.create_context(self.callers[number])
        return execute_stream(operation, {"id": ticket_global_id(ticket.ref)}, context)

    async def serve(self) -> None:
        """Serve who is there."""
        await serve_queued_requests(self.services, self.slot_id)


@pytest.fixture
async def counter(servers: EmbeddedServers) -> AsyncIterator[Counter]:
    """Rooms with an empty queue that nobody serves but the test."""
    own = with_own_redis_database(servers)
    with Redis.from_url(own.redis_url) as redis:
        redis.flushdb()
    settings = Settings.model_validate(
        {
            "mongo_url": database_url(own, "ticket_memory"),
            "redis_url": own.redis_url,
            "secret_key": SECRET,
            "queue_worker": False,
        }
    )
    async with open_app_state(settings, development=False) as rooms:
        server: GraphQLServer = rooms.graphql_server
        callers = []
        for number in range(10):
            email = f"{new_slot_id()}{number}@slotlock.test"
            user = await server.services.users.insert("A", email, Role.MEMBER, "none", utc_now())
            assert user is not None
            callers.append(Caller(user.id, Role.MEMBER, "session", utc_now() + TICKET_TTL))
        yield Counter(server, callers)


def plain(answer: Any) -> Json:
    """The ticket that an answer tells."""
    assert "errors" not in answer.body, answer.body
    ticket: Json = answer.body["data"]["ticket"]
    return ticket


async def test_a_slow_subscriber_receives_the_latest_state_only(
    counter: Counter,
) -> None:
    await counter.open_slot(20)
    for number in range(5):
        await counter.stand(number)
    last = await counter.stand(5)
    async with aclosing(counter.watch(5, last)) as received:
        assert plain(await anext(received))["position"] == 6
        (watch,) = counter.services.ticket_updates._subscriptions[counter.slot_id]
        for place in range(5, 0, -1):  # each is received, and none of it is read
            watch.publish(replace(last, position=place))
        assert plain(await anext(received))["position"] == 1
        watch.publish(replace(last, position=1))  # nothing new
        await counter.serve()
        assert plain(await anext(received))["status"] == "ANSWERED"
        assert [answer async for answer in received] == []


async def test_a_subscription_started_after_the_outcome_receives_it_once(counter: Counter) -> None:
    await counter.open_slot(1)
    ticket = await counter.stand(0)
    await counter.serve()
    for _ in range(2):
        states = [plain(answer) async for answer in counter.watch(0, ticket)]
        assert [state["status"] for state in states] == ["ANSWERED"]
    assert not counter.services.ticket_updates._subscriptions


async def test_finished_tickets_leave_nothing_in_memory(
    counter: Counter, servers: EmbeddedServers
) -> None:
    async def come_and_go() -> int:
        for _ in range(TICKETS // 10):
            await counter.open_slot(5)
            tickets = [await counter.stand(number) for number in range(10)]
            streams = [counter.watch(number, each) for number, each in enumerate(tickets)]
            assert [plain(await anext(each))["position"] for each in streams] == list(range(1, 11))
            await counter.serve()
            for stream in streams[:-1]:
                states = [plain(answer)["status"] async for answer in stream]
                assert states[-1] == "ANSWERED"
            await streams[-1].aclose()  # who goes before the answer
        gc.collect()
        return len(gc.get_objects())

    # What tickets left behind would be there after every round; what else the process keeps (a
    # heartbeat's exchange, a cache that fills) grows in one or another.
    counts = [await come_and_go()]
    growth = [TICKETS]
    while growth[-1] >= TICKETS and len(growth) <= MOST_ROUNDS:
        counts.append(await come_and_go())
        growth.append(counts[-1] - counts[-2])
    assert min(growth) < TICKETS, counts
    assert (
        counter.services.ticket_updates._subscriptions,
        counter.services.ticket_updates._due,
    ) == (
        {},
        set(),
    )
    with Redis.from_url(with_own_redis_database(servers).redis_url) as redis:
        left = {key: redis.type(key) for key in redis.scan_iter("slotlock:{queue:*")}
        assert set(left.values()) == {b"stream"}
        assert sum(redis.xlen(key) for key in left) == 0
        assert sum(group["pending"] for key in left for group in redis.xinfo_groups(key)) == 0
