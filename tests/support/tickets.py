"""The admission queue as clients use it, at processes that serve it and at such as do not.

A Redis holds one queue, whatever the databases behind: these scenes have a part of it for
themselves, so that no other process of the tests serves it.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.admitted import serve_batch
from slotlock.desk.desk import Desk
from slotlock.desk.once import key_id_of
from slotlock.domain.bookings import SlotId
from slotlock.graphql.ids import ticket_of
from slotlock.stores.queue import PARTITIONS
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


def partition_of(slot_gid: str) -> int:
    """The part of the line in which people stand in front of a slot."""
    return crc32(slot_gid[-24:].encode()) % PARTITIONS


async def serve_who_is_there(desk: Desk, slot_id: SlotId) -> None:
    """Serve those who are in line for a slot, alone in its partition, as a worker does."""
    partition = Partition(desk.queue.line, desk.queue.partition_of(slot_id))
    entries = await partition.take()
    await partition.finish(slot_id, await serve_batch(desk, slot_id, entries))


@dataclass
class QueueScene(Scene):
    """A scene in which nobody serves the queue until a worker comes."""

    def counter(self, off: str = "", length: int = 1_000) -> AppProcess:
        """A process that lets so many stand in a part of the line, and serves nobody."""
        return self._process({"SLOTLOCK_QUEUE_LENGTH": str(length)}, off)

    def worker(self, off: str = "", pause: str = "", stage: Stage | None = None) -> AppProcess:
        """A process that serves the queue, too."""
        return self._process({"SLOTLOCK_QUEUE_WORKER": "on"}, off, pause, stage)

    def slow_worker(self, off: str = "", pause: str = "batch") -> Stage:
        """A process that serves the queue and stops with the first batch it took, or each."""
        stage = Stage(self.redis)
        self.worker(off, pause, stage)
        return stage

    def _process(
        self, more: Json, off: str = "", pause: str = "", stage: Stage | None = None
    ) -> AppProcess:
        settings, where = {**self.environment, **more}, self.logs / secrets.token_hex(4)
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

    def known(self) -> dict[Any, Any]:
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


@asynccontextmanager
async def queue_scene(servers: Servers, logs: Path, people: int) -> AsyncIterator[QueueScene]:
    """A scene with so many people, an empty queue of its own, and nobody who serves it."""
    settings = {**environment(own_part(servers), "queue"), "SLOTLOCK_QUEUE_WORKER": "off"}
    async with scene_on(settings, logs, people) as scene:
        scene.redis.flushdb()
        yield QueueScene(**vars(scene))


@pytest.fixture
async def line(servers: Servers, logs: Path) -> AsyncIterator[QueueScene]:
    """A scene with a few people, and nobody who serves the queue."""
    async with queue_scene(servers, logs, 12) as scene:
        yield scene


@pytest.fixture
async def crowded(servers: Servers, logs: Path) -> AsyncIterator[QueueScene]:
    """The same with 200 people."""
    async with queue_scene(servers, logs, 200) as scene:
        yield scene
