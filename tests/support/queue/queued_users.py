"""People who stand in line, what their tickets say, and whether that is what MongoDB says."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.admission.queue import PARTITIONS
from slotlock.infrastructure.redis.keys import LockKeys, admission_lock, lock_keys, queue_keys
from tests.support.apps.deployment import Deployment, assert_slot_consistent, lock_key
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, WebSocketTestClient, open_websocket
from tests.support.polling import poll_until

TICKET_FRAGMENT = """fragment T on Ticket {
  id status position slotId
  outcome { __typename ... on Refusal { code } ... on Booked { booking { id user { id } } } }
}"""
REQUEST_BOOKING = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  __typename ... on Refusal {{ code message }} ... on Ticket {{ ...T }}
}} }} {TICKET_FRAGMENT}"""
TICKET_BY_ID = f"query($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET_FRAGMENT}"
WATCH_TICKET = f"subscription($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET_FRAGMENT}"


@dataclass
class IsolatedQueue:
    """Where people stand in line: a Redis of their own, and an app that serves no queue."""

    valkey: RestartableServer
    frontend: AppProcess

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of all who serve here."""
        return self.frontend.environment


@contextmanager
def open_isolated_queue(
    servers: EmbeddedServers, directory: Path, name: str, mongo_url: str = ""
) -> Iterator[IsolatedQueue]:
    """A hall with a Redis of its own: who serves a queue serves all who stand in it."""
    with restartable_server(directory / "valkey", "valkey") as valkey:
        settings = app_environment(servers, name) | {
            "SLOTLOCK_REDIS_URL": valkey.url,
            "SLOTLOCK_QUEUE_WORKER": "off",
        }
        if mongo_url:
            settings["SLOTLOCK_MONGO_URL"] = mongo_url
        with forked_app(settings, directory / "front") as front:
            yield IsolatedQueue(valkey, front)


def result_name(ticket: Json) -> str:
    """What came of a ticket in a word: the kind of its outcome, or where it stands."""
    return str(ticket["outcome"]["__typename"] if ticket["outcome"] else ticket["status"])


@dataclass
class QueuedUsers:
    """People in line for one slot in order of arrival, each with the ticket and the key they have.

    `request` is what the others ask for too, but for the slot and the key.
    """

    deployment: Deployment
    frontend: AppProcess
    slot_id: str
    clients: list[BookingClient]
    ticket_ids: list[str]
    idempotency_keys: list[str]

    async def enqueue(self, client: BookingClient, **options: Any) -> Json:
        """Somebody more in line, at the end."""
        key = secrets.token_hex(8)
        ticket = await request_ticket(client, self.slot_id, idempotencyKey=key, **options)
        assert ticket["__typename"] == "Ticket", ticket
        self.clients.append(client)
        self.ticket_ids.append(ticket["id"])
        self.idempotency_keys.append(key)
        return ticket

    async def resend(self, index: int, **options: Any) -> Json:
        """What one of them is answered who asks the same under the same key."""
        key = self.idempotency_keys[index]
        return await request_ticket(
            self.clients[index], self.slot_id, idempotencyKey=key, **options
        )

    async def fetch_tickets(self) -> list[Json]:
        """All the tickets."""
        asked = zip(self.clients, self.ticket_ids, strict=True)
        return list(
            await asyncio.gather(*(person.execute(TICKET_BY_ID, id=id_) for person, id_ in asked))
        )

    async def result_names(self) -> list[str]:
        """What the tickets say now, in a word each."""
        return [result_name(ticket) for ticket in await self.fetch_tickets()]

    async def wait_for_status(self, status: str, *indexes: int) -> None:
        """Wait until the tickets of these, or of all, say so."""

        async def tickets_by_index() -> Json:
            return dict(enumerate(await self.fetch_tickets()))  # type: ignore[arg-type]

        def has_status(tickets: Any) -> bool:
            return all(tickets[n]["status"] == status for n in indexes or tickets)

        await poll_until(tickets_by_index, has_status, f"{indexes or 'all'} are {status}")

    async def wait_until_empty(self) -> None:
        """Wait until nobody is in line any more."""

        async def count_entries() -> Json:
            return {"left": len(self.entries)}

        await poll_until(count_entries, lambda seen: not seen["left"], "all have left the line")

    async def assert_results(self, *names: str) -> None:
        """Each gets this outcome, once and for all, and who is told that they are booked is."""
        await self.wait_for_status("ANSWERED")
        first = await self.fetch_tickets()
        assert [result_name(ticket) for ticket in first] == list(names)
        assert await self.fetch_tickets() == first
        again = [await self.resend(number) for number in range(len(self.clients))]
        assert [{k: v for k, v in a.items() if k != "__typename"} for a in again] == first
        self.assert_roster(first)

    async def assert_arrival_order(self) -> None:
        """Who came first was given a place first."""
        told = [
            t["outcome"]["booking"]
            for t in await self.fetch_tickets()
            if result_name(t) == "Booked"
        ]
        roster = [
            str(booking["id"])
            for booking in self.deployment.slot_document(self.slot_id)["bookings"]
        ]
        assert roster == [booking["id"][-24:] for booking in told]

    def assert_roster(self, tickets: Sequence[Json]) -> None:
        """Those whose tickets say that they are booked are on the roster, and nobody else."""
        booked = [
            t["outcome"]["booking"]["id"][-24:] for t in tickets if result_name(t) == "Booked"
        ]
        assert self.deployment.consistent_booking_ids(self.slot_id) == set(booked)
        assert_slot_consistent(self.deployment.slot_document(self.slot_id), len(booked))

    async def cancel(self, index: int) -> None:
        """One of them gives back the place that they have."""
        mine = await self.clients[index].fetch_slot(self.slot_id)
        given_back = await self.clients[index].cancel_booking(mine["myBooking"]["id"])
        assert given_back["__typename"] == "BookingCancelled", given_back

    @property
    def partition(self) -> int:
        """Where they stand, in every process the same."""
        return crc32(self.slot_id[-24:].encode()) % PARTITIONS

    @property
    def entries(self) -> list[dict[Any, Any]]:
        """What is in line there, as Redis has it."""
        found: Any = self.deployment.redis.xrange(queue_keys(self.partition).requests)
        return [fields for _, fields in found]

    def redeliver(self, entries: Sequence[dict[Any, Any]]) -> None:
        """Deliver requests once more, as a copy of the stream would."""
        for fields in entries:
            self.deployment.redis.xadd(queue_keys(self.partition).requests, fields)

    @property
    def worker_lock_keys(self) -> LockKeys:
        """The keys of the lock whose holder processes their partition."""
        return lock_keys(admission_lock(self.partition))

    def expire_locks(self) -> None:
        """Let what the dead held, of the slot and of the partition, run out now."""
        self.deployment.redis.delete(lock_key(self.slot_id), self.worker_lock_keys.lock)


async def request_ticket(client: BookingClient, slot_id: str, **options: Any) -> Json:
    """What somebody is answered who asks to stand in line."""
    answer: Json = await client.execute(REQUEST_BOOKING, input={"slotId": slot_id, **options})
    return answer


async def enqueue_users(
    deployment: Deployment, frontend: AppProcess, user_count: int, capacity: int
) -> QueuedUsers:
    """So many people who came one after the other, for so few places."""
    slot_id = await deployment.add_slot(frontend, capacity=capacity)
    line = QueuedUsers(deployment, frontend, slot_id, [], [], [])
    for person in deployment.clients(frontend, user_count):
        await line.enqueue(person)
    return line


@asynccontextmanager
async def watch_ticket(queued: QueuedUsers, index: int) -> AsyncIterator[WebSocketTestClient]:
    """A socket on which one of them is told where their ticket stands."""
    async with open_websocket(queued.frontend, queued.clients[index].token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=queued.ticket_ids[index])
        yield opened


async def expect_status(websocket: WebSocketTestClient, status: str) -> Json:
    """The first state that is more than QUEUED, which is to be this one."""
    while (ticket := await websocket.next_result())["status"] == "QUEUED":
        pass
    assert ticket["status"] == status, ticket
    told: Json = ticket
    return told


async def expect_final_status(websocket: WebSocketTestClient, status: str) -> Json:
    """The final state, which is to be this one, and nothing after it."""
    ticket = await expect_status(websocket, status)
    assert (await websocket.receive())["type"] == "complete"
    return ticket
