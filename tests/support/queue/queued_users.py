"""Users queued for one slot, their tickets, and whether these agree with MongoDB."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.keys import LockKeys, admission_lock, lock_keys, queue_keys
from tests.support.apps.deployment import Deployment, assert_slot_consistent, lock_key
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, WebSocketTestClient, open_websocket
from tests.support.polling import eventually, poll_until
from tests.support.queue.deployment import queue_partition
from tests.support.queue.documents import (
    CANCEL_TICKET,
    REQUEST_BOOKING,
    TICKET_BY_ID,
    WATCH_TICKET,
)


@dataclass
class IsolatedQueue:
    """A Redis of its own, and an app that enqueues requests but serves no queue."""

    valkey: RestartableServer
    frontend: AppProcess

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of every process that uses this queue."""
        return self.frontend.environment


@contextmanager
def open_isolated_queue(
    servers: EmbeddedServers, directory: Path, name: str, mongo_url: str = ""
) -> Iterator[IsolatedQueue]:
    """Open an isolated queue, by default with a database of the shared MongoDB."""
    with restartable_server(directory / "valkey", "valkey") as valkey:
        settings = app_environment(servers, name) | {
            "SLOTLOCK_REDIS_URL": valkey.url,
            "SLOTLOCK_QUEUE_WORKER": "off",
        }
        if mongo_url:
            settings["SLOTLOCK_MONGO_URL"] = mongo_url
        with forked_app(settings, directory / "frontend") as frontend:
            yield IsolatedQueue(valkey, frontend)


def result_name(ticket: Json) -> str:
    """Return the type of a ticket's outcome or, without an outcome, its status."""
    return str(ticket["outcome"]["__typename"] if ticket["outcome"] else ticket["status"])


@dataclass
class QueuedUsers:
    """Users queued for one slot in order of arrival, each with a ticket and its key."""

    deployment: Deployment
    frontend: AppProcess
    slot_id: str
    clients: list[BookingClient] = field(default_factory=list)
    ticket_ids: list[str] = field(default_factory=list)
    idempotency_keys: list[str] = field(default_factory=list)

    async def enqueue(self, client: BookingClient, **options: Any) -> Json:
        """Request a booking for one more user and return the ticket."""
        key = secrets.token_hex(8)
        ticket = await request_ticket(client, self.slot_id, idempotencyKey=key, **options)
        assert ticket["__typename"] == "Ticket", ticket
        self.clients.append(client)
        self.ticket_ids.append(ticket["id"])
        self.idempotency_keys.append(key)
        return ticket

    async def resend(self, index: int, **options: Any) -> Json:
        """Send the request of one user again, with the same key."""
        key = self.idempotency_keys[index]
        return await request_ticket(
            self.clients[index], self.slot_id, idempotencyKey=key, **options
        )

    async def cancel_ticket(self, index: int) -> Json:
        """Cancel the queued request of one user."""
        outcome: Json = await self.clients[index].execute(CANCEL_TICKET, id=self.ticket_ids[index])
        return outcome

    async def fetch_tickets(self) -> list[Json]:
        """Return the present state of all tickets."""
        tickets = zip(self.clients, self.ticket_ids, strict=True)
        return list(
            await asyncio.gather(*(client.execute(TICKET_BY_ID, id=id_) for client, id_ in tickets))
        )

    async def result_names(self) -> list[str]:
        """Return the outcome type or the status of each ticket."""
        return [result_name(ticket) for ticket in await self.fetch_tickets()]

    async def wait_for_status(self, status: str, *indexes: int) -> None:
        """Wait until these tickets, by default all, have this status."""

        def has_status(tickets: list[Json]) -> bool:
            return all(tickets[n]["status"] == status for n in indexes or range(len(tickets)))

        await poll_until(self.fetch_tickets, has_status, f"tickets {indexes or 'all'} {status}")

    async def wait_until_empty(self) -> None:
        """Wait until no request is queued in this partition."""
        await eventually(lambda: not self.entries, "an empty queue")

    async def assert_results(self, *names: str) -> None:
        """Assert these outcomes, which stay the same, and that exactly the booked have a place."""
        await self.wait_for_status("ANSWERED")
        first = await self.fetch_tickets()
        assert [result_name(ticket) for ticket in first] == list(names)
        assert await self.fetch_tickets() == first
        resent = [await self.resend(number) for number in range(len(self.clients))]
        assert [{k: v for k, v in t.items() if k != "__typename"} for t in resent] == first
        self.assert_roster(first)

    async def assert_arrival_order(self) -> None:
        """Assert that the bookings were made in the order of the requests."""
        tickets = await self.fetch_tickets()
        reported = [
            ticket["outcome"]["booking"]["id"][-24:]
            for ticket in tickets
            if result_name(ticket) == "Booked"
        ]
        document = self.deployment.slot_document(self.slot_id)
        assert [str(booking["id"]) for booking in document["bookings"]] == reported

    def assert_roster(self, tickets: Sequence[Json]) -> None:
        """Assert that the bookings of these tickets are those of the slot."""
        booked = [
            t["outcome"]["booking"]["id"][-24:] for t in tickets if result_name(t) == "Booked"
        ]
        assert self.deployment.consistent_booking_ids(self.slot_id) == set(booked)
        assert_slot_consistent(self.deployment.slot_document(self.slot_id), len(booked))

    async def cancel(self, index: int) -> None:
        """Cancel the booking of one user."""
        slot = await self.clients[index].fetch_slot(self.slot_id)
        cancelled = await self.clients[index].cancel_booking(slot["myBooking"]["id"])
        assert cancelled["__typename"] == "BookingCancelled", cancelled

    @property
    def partition(self) -> int:
        """The partition of the slot."""
        return queue_partition(self.slot_id)

    @property
    def entries(self) -> list[dict[Any, Any]]:
        """The queued requests of the partition, as Redis stores them."""
        entries: Any = self.deployment.redis.xrange(queue_keys(self.partition).requests)
        return [fields for _, fields in entries]

    def redeliver(self, entries: Sequence[dict[Any, Any]]) -> None:
        """Append entries to the stream, as a restored copy of Redis may."""
        for fields in entries:
            self.deployment.redis.xadd(queue_keys(self.partition).requests, fields)

    @property
    def worker_lock_keys(self) -> LockKeys:
        """The keys of the lock whose holder processes the partition."""
        return lock_keys(admission_lock(self.partition))

    def expire_locks(self) -> None:
        """Let the locks of a dead worker expire now: of the slot and of the partition."""
        self.deployment.redis.delete(lock_key(self.slot_id), self.worker_lock_keys.lock)


async def request_ticket(client: BookingClient, slot_id: str, **options: Any) -> Json:
    """Request a booking. Returns a ticket or a refusal."""
    outcome: Json = await client.execute(REQUEST_BOOKING, input={"slotId": slot_id, **options})
    return outcome


async def enqueue_users(
    deployment: Deployment, frontend: AppProcess, user_count: int, capacity: int
) -> QueuedUsers:
    """Enqueue users one after the other for a new slot."""
    slot_id = await deployment.add_slot(frontend, capacity=capacity)
    queued = QueuedUsers(deployment, frontend, slot_id)
    for client in deployment.clients(frontend, user_count):
        await queued.enqueue(client)
    return queued


@asynccontextmanager
async def watch_ticket(queued: QueuedUsers, index: int) -> AsyncIterator[WebSocketTestClient]:
    """Open a socket that subscribes to one of the tickets."""
    async with open_websocket(queued.frontend, queued.clients[index].token) as websocket:
        await websocket.subscribe("1", WATCH_TICKET, id=queued.ticket_ids[index])
        yield websocket


async def expect_status(websocket: WebSocketTestClient, status: str) -> Json:
    """Return the first state that is not QUEUED, which must have this status."""
    ticket: Json
    while (ticket := await websocket.next_result())["status"] == "QUEUED":
        pass
    assert ticket["status"] == status, ticket
    return ticket


async def expect_final_status(websocket: WebSocketTestClient, status: str) -> Json:
    """Return the final state, which must have this status and end the subscription."""
    ticket = await expect_status(websocket, status)
    assert (await websocket.receive())["type"] == "complete"
    return ticket
