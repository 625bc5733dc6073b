"""Finished tickets leave nothing in process memory, in ticket subscriptions or in Redis."""

import gc
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from slotlock.api.app_state import open_app_state
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TICKET_TTL, Ticket
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller, Role
from slotlock.graphql.core.ids import ticket_global_id
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.graphql.transport.graphql_server import GraphQLServer
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.booking.book import BookingOptions
from slotlock.services.container import Services, utc_now
from tests.support.apps.processes import app_settings
from tests.support.clients.client import Json
from tests.support.queue.deployment import serve_queued_requests, with_own_redis_database
from tests.support.queue.documents import WATCH_TICKET
from tests.support.stores.slots import insert_slot

TICKETS_PER_ROUND = 100
MAX_ROUNDS = 6


class TicketDriver:
    """Services of one process whose queue only the test processes."""

    def __init__(self, server: GraphQLServer, callers: list[Caller]) -> None:
        self.server = server
        self.services: Services = server.services
        self.callers = callers
        self.slot_id = SlotId("")

    async def open_slot(self, capacity: int) -> None:
        """Create a slot that begins in two days and use it for all later requests."""
        start = utc_now() + 2 * TICKET_TTL
        self.slot_id = await insert_slot(self.services, capacity, start=start)

    async def request(self, number: int) -> Ticket:
        """Request a booking for one of the callers and return the ticket."""
        caller = self.callers[number]
        result = await request_booking(
            self.services, caller, self.slot_id, caller.user_id, BookingOptions()
        )
        assert isinstance(result.outcome, Ticket)
        return result.outcome

    def watch(self, number: int, ticket: Ticket) -> AsyncGenerator[Any, None]:
        """Subscribe to a ticket as one of the callers."""
        operation = self.server.document_cache.resolve_operation(WATCH_TICKET, None)
        context = self.server.create_context(self.callers[number])
        return execute_stream(operation, {"id": ticket_global_id(ticket.ref)}, context)

    async def process_queue(self) -> None:
        """Process all queued requests of the slot."""
        await serve_queued_requests(self.services, self.slot_id)


@pytest.fixture
async def driver(servers: EmbeddedServers) -> AsyncIterator[TicketDriver]:
    """Yield services with an empty queue, no admission worker and 10 callers."""
    own_servers = with_own_redis_database(servers)
    with Redis.from_url(own_servers.redis_url) as redis:
        redis.flushdb()
    settings = app_settings(own_servers, "ticket_memory", redis_budget_ms=1000, queue_worker=False)
    async with open_app_state(settings, development=False) as app_state:
        server: GraphQLServer = app_state.graphql_server
        callers = []
        for number in range(10):
            email = f"{new_slot_id()}{number}@slotlock.test"
            user = await server.services.users.insert("A", email, Role.MEMBER, "none", utc_now())
            assert user is not None
            callers.append(Caller(user.id, Role.MEMBER, "session", utc_now() + TICKET_TTL))
        yield TicketDriver(server, callers)


def ticket_of(response: Any) -> Json:
    """Return the ticket of a response."""
    assert "errors" not in response.body, response.body
    ticket: Json = response.body["data"]["ticket"]
    return ticket


async def test_a_slow_subscriber_receives_the_latest_state_only(driver: TicketDriver) -> None:
    await driver.open_slot(20)
    for number in range(5):
        await driver.request(number)
    last = await driver.request(5)
    async with aclosing(driver.watch(5, last)) as received:
        assert ticket_of(await anext(received))["position"] == 6
        (subscription,) = driver.services.ticket_updates._subscriptions[driver.slot_id]
        for position in range(5, 0, -1):  # the subscriber reads none of these states
            subscription.publish(replace(last, position=position))
        assert ticket_of(await anext(received))["position"] == 1
        subscription.publish(replace(last, position=1))  # an unchanged state
        await driver.process_queue()
        assert ticket_of(await anext(received))["status"] == "ANSWERED"
        assert [response async for response in received] == []


async def test_a_subscription_after_the_outcome_receives_it_once(driver: TicketDriver) -> None:
    await driver.open_slot(1)
    ticket = await driver.request(0)
    await driver.process_queue()
    for _ in range(2):
        states = [ticket_of(response) async for response in driver.watch(0, ticket)]
        assert [state["status"] for state in states] == ["ANSWERED"]
    assert not driver.services.ticket_updates._subscriptions


async def test_finished_tickets_leave_nothing_in_memory(
    driver: TicketDriver, servers: EmbeddedServers
) -> None:
    async def objects_after_round() -> int:
        for _ in range(TICKETS_PER_ROUND // 10):
            await driver.open_slot(5)
            tickets = [await driver.request(number) for number in range(10)]
            streams = [driver.watch(number, each) for number, each in enumerate(tickets)]
            assert [ticket_of(await anext(each))["position"] for each in streams] == list(
                range(1, 11)
            )
            await driver.process_queue()
            for stream in streams[:-1]:
                states = [ticket_of(response)["status"] async for response in stream]
                assert states[-1] == "ANSWERED"
            await streams[-1].aclose()  # this subscriber leaves before the outcome
        gc.collect()
        return len(gc.get_objects())

    # A ticket leak would grow the heap in every round. Other objects of the process (heartbeat
    # messages, caches) grow it only in some rounds.
    counts = [await objects_after_round()]
    growth = [TICKETS_PER_ROUND]
    while growth[-1] >= TICKETS_PER_ROUND and len(growth) <= MAX_ROUNDS:
        counts.append(await objects_after_round())
        growth.append(counts[-1] - counts[-2])
    assert min(growth) < TICKETS_PER_ROUND, counts
    assert (driver.services.ticket_updates._subscriptions, driver.services.ticket_updates._due) == (
        {},
        set(),
    )
    with Redis.from_url(with_own_redis_database(servers).redis_url) as redis:
        remaining_keys = {key: redis.type(key) for key in redis.scan_iter("slotlock:{queue:*")}
        assert set(remaining_keys.values()) == {b"stream"}
        assert sum(redis.xlen(key) for key in remaining_keys) == 0
        assert (
            sum(group["pending"] for key in remaining_keys for group in redis.xinfo_groups(key))
            == 0
        )
