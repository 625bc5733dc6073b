"""The admission queue as clients use it, at processes that serve it and at such as do not.

A Redis holds one queue, whatever the databases behind: these scenes have a part of it for
themselves, so that no other process of the tests serves it.
"""

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.admitted import serve_batch
from slotlock.desk.desk import Desk
from slotlock.desk.once import key_id_of
from slotlock.domain.bookings import SlotId
from slotlock.graphql.ids import ticket_of
from slotlock.stores.queue_partitions import Partition
from tests.support.client import Json
from tests.support.desk import BOOKING, REFUSAL, SLOT, Person, wait_for
from tests.support.offices import until
from tests.support.processes import AppProcess, environment
from tests.support.stage import Scene, Stage, scene_on, variant

TICKET = f"""fragment T on Ticket {{ id slotId status place askedAt outcome {{
  __typename {REFUSAL}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on KeyReused {{ idempotencyKey }}
}} }} {BOOKING} {SLOT}"""
REQUEST = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  __typename ...T {REFUSAL}
  ... on QueueFull {{ slotId retryAfterMs }} ... on KeyReused {{ idempotencyKey }}
}} }} {TICKET}"""
LOOK = f"query($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET}"
WATCH_TICKET = f"subscription($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET}"
NODES = f"query($ids: [ID!]!) {{ nodes(ids: $ids) {{ id ... on Ticket {{ ...T }} }} }} {TICKET}"


class Customer(Person):
    """Somebody who stands in line."""

    async def request(self, slot_id: str, **wish: Any) -> Json:
        """A ticket, or why there is none."""
        outcome: Json = await self.ask(REQUEST, input={"slotId": slot_id, **wish})
        return outcome

    async def stand(self, slot_id: str, **wish: Any) -> Json:
        """A ticket; nobody serves the line."""
        outcome = await self.request(slot_id, **wish)
        assert (outcome["__typename"], outcome.get("status")) == ("Ticket", "QUEUED"), outcome
        return outcome

    async def ticket(self, ticket_id: str) -> Any:
        """A ticket as it stands."""
        return await self.ask(LOOK, id=ticket_id)

    async def outcome(self, ticket_id: str) -> Json:
        """What comes of a ticket."""
        answered = await wait_for(
            lambda: self.ticket(ticket_id), lambda seen: seen["status"] != "QUEUED", "an answer"
        )
        assert answered["status"] == "ANSWERED", answered
        assert answered["place"] is None
        outcome: Json = answered["outcome"]
        return outcome

    async def code(self, ticket_id: str) -> str:
        """Why a ticket was refused, or that it was not."""
        outcome = await self.outcome(ticket_id)
        return str(outcome.get("code", outcome["__typename"]))


def own_part(servers: Servers) -> Servers:
    """The same servers, and a part of Redis that no process of other tests looks at."""
    return replace(servers, redis_url=f"{servers.redis_url}/9")


async def serve_who_is_there(desk: Desk, slot_id: SlotId) -> None:
    """Serve those who are in line for a slot, alone in its partition, as a worker does."""
    partition = Partition(desk.queue.line, desk.queue.partition_of(slot_id))
    entries = await partition.take()
    await partition.finish(slot_id, await serve_batch(desk, slot_id, entries))


@dataclass
class QueueScene(Scene):
    """A scene in which nobody serves the queue until a worker comes."""

    def worker(self, off: str = "", pause: str = "", stage: Stage | None = None) -> AppProcess:
        """A process that serves the queue, too."""
        settings = {**self.environment, "SLOTLOCK_QUEUE_WORKER": "on"}
        where = self.logs / secrets.token_hex(4)
        return self.stack.enter_context(variant(settings, where, off=off, pause=pause, stage=stage))

    def customer(self, app: AppProcess, number: int) -> Customer:
        """Somebody at a process: the same number is the same person at each."""
        return Customer(self.http, app.url, self.crowd.members[number])

    def customers(self, app: AppProcess, size: int) -> list[Customer]:
        """The first so many."""
        return [self.customer(app, number) for number in range(size)]

    def in_line(self) -> int:
        """How many requests are in line, taken or not."""
        return sum(self.redis.xlen(key) for key in self.redis.scan_iter("*:requests"))

    def known(self) -> dict[bytes, bytes]:
        """All that Redis knows of who stands in line."""
        hashes = [self.redis.hgetall(key) for key in self.redis.scan_iter("*:tickets")]
        return {field: value for each in hashes for field, value in each.items()}

    def kept(self, ticket_id: str) -> str:
        """The outcome that is kept of a ticket, read past the app."""
        ref = ticket_of(ticket_id)
        assert ref is not None
        answers = self.mongo.get_default_database()["answers"]
        answer = answers.find_one({"_id": key_id_of(ref.asked_by, ref.key)})
        assert answer is not None
        return str(answer["outcome"]["_is"])

    async def until_served(self) -> None:
        """Wait until nobody is in line."""

        async def empty() -> bool:
            return self.in_line() == 0

        await until(empty, "an empty line")


@pytest.fixture
async def line(servers: Servers, logs: Path) -> AsyncIterator[QueueScene]:
    """A scene with an empty queue of its own, and nobody who serves it."""
    settings = {
        **environment(own_part(servers), "queue"),
        "SLOTLOCK_QUEUE_WORKER": "off",
    }
    async with scene_on(settings, logs) as scene:
        scene.redis.flushdb()
        yield QueueScene(**vars(scene))
