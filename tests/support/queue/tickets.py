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

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.graphql.core.ids import parse_ticket_id
from slotlock.infrastructure.redis.admission.partitions import QueuePartition
from slotlock.infrastructure.redis.admission.queue import PARTITIONS
from slotlock.services.admission.batch import serve_batch
from slotlock.services.commands.idempotency_key import record_id
from slotlock.services.container import Services
from tests.support.apps.deployment import Deployment, PausePoint, app_variant, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import (
    BOOKING_FRAGMENT,
    REFUSAL_FIELDS,
    SLOT_FRAGMENT,
    BookingClient,
)
from tests.support.clients.client import Json
from tests.support.polling import eventually, poll_until

FULL_TICKET_FRAGMENT = f"""fragment T on Ticket {{ id slotId status position askedAt outcome {{
  __typename {REFUSAL_FIELDS}
  ... on Booked {{ booking {{ ...B }} slot {{ ...S }} }}
  ... on AlreadyBooked {{ booking {{ ...B }} }}
  ... on KeyReused {{ idempotencyKey }}
}} }} {BOOKING_FRAGMENT} {SLOT_FRAGMENT}"""
REQUEST_FULL_TICKET = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  __typename ...T {REFUSAL_FIELDS}
  ... on QueueFull {{ slotId retryAfterMs }} ... on KeyReused {{ idempotencyKey }}
}} }} {FULL_TICKET_FRAGMENT}"""
FULL_TICKET_BY_ID = f"query($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {FULL_TICKET_FRAGMENT}"
WATCH_FULL_TICKET = (
    f"subscription($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {FULL_TICKET_FRAGMENT}"
)
FULL_TICKETS_BY_ID = (
    "query($ids: [ID!]!) { nodes(ids: $ids) { id ... on Ticket { ...T } } } "
    f"{FULL_TICKET_FRAGMENT}"
)


class QueueClient(BookingClient):
    """Somebody who stands in line."""

    async def request_booking(self, slot_id: str, **options: Any) -> Json:
        """A ticket, or why there is none."""
        outcome: Json = await self.execute(
            REQUEST_FULL_TICKET, input={"slotId": slot_id, **options}
        )
        return outcome

    async def enqueue(self, slot_id: str, **options: Any) -> Json:
        """A ticket; nobody serves the line."""
        outcome = await self.request_booking(slot_id, **options)
        assert (outcome["__typename"], outcome.get("status")) == ("Ticket", "QUEUED"), outcome
        return outcome

    async def fetch_ticket(self, ticket_id: str) -> Any:
        """A ticket as it stands."""
        return await self.execute(FULL_TICKET_BY_ID, id=ticket_id)

    async def wait_for_outcome(self, ticket_id: str) -> Json:
        """What comes of a ticket."""
        answered = await poll_until(
            lambda: self.fetch_ticket(ticket_id),
            lambda seen: seen["status"] != "QUEUED",
            "an answer",
        )
        assert answered["status"] == "ANSWERED", answered
        assert answered["position"] is None
        outcome: Json = answered["outcome"]
        return outcome

    async def wait_for_outcome_code(self, ticket_id: str) -> str:
        """Why a ticket was refused, or that it was not."""
        outcome = await self.wait_for_outcome(ticket_id)
        return str(outcome.get("code", outcome["__typename"]))


def with_own_redis_database(servers: EmbeddedServers) -> EmbeddedServers:
    """The same servers, and a part of Redis that no process of other tests looks at."""
    return replace(servers, redis_url=f"{servers.redis_url}/9")


def queue_partition(slot_global_id: str) -> int:
    """The part of the line in which people stand in front of a slot."""
    return crc32(slot_global_id[-24:].encode()) % PARTITIONS


async def serve_queued_requests(services: Services, slot_id: SlotId) -> None:
    """Serve those who are in line for a slot, alone in its partition, as a worker does."""
    partition = QueuePartition(
        services.admission_queue.pipeline, services.admission_queue.partition_of(slot_id)
    )
    entries = await partition.read_new()
    await partition.acknowledge(slot_id, await serve_batch(services, slot_id, entries))


@dataclass
class QueueDeployment(Deployment):
    """A scene in which nobody serves the queue until a worker comes."""

    def frontend(self, without_guards: str = "", max_queue_length: int = 1_000) -> AppProcess:
        """A process that lets so many stand in a part of the line, and serves nobody."""
        return self._start_process({"SLOTLOCK_QUEUE_LENGTH": str(max_queue_length)}, without_guards)

    def worker(
        self, without_guards: str = "", pause_at: str = "", pause_point: PausePoint | None = None
    ) -> AppProcess:
        """A process that serves the queue, too."""
        return self._start_process(
            {"SLOTLOCK_QUEUE_WORKER": "on"}, without_guards, pause_at, pause_point
        )

    def stalled_worker(self, without_guards: str = "", pause_at: str = "batch") -> PausePoint:
        """A process that serves the queue and stops with the first batch it took, or each."""
        stage = PausePoint(self.redis)
        self.worker(without_guards, pause_at, stage)
        return stage

    def _start_process(
        self,
        overrides: Json,
        without_guards: str = "",
        pause_at: str = "",
        pause_point: PausePoint | None = None,
    ) -> AppProcess:
        settings, where = {**self.environment, **overrides}, self.log_dir / secrets.token_hex(4)
        return self.stack.enter_context(
            app_variant(
                settings,
                where,
                without_guards=without_guards,
                pause_at=pause_at,
                pause_point=pause_point,
            )
        )

    def queue_client(self, app: AppProcess, number: int) -> QueueClient:
        """Somebody at a process: the same number is the same person at each."""
        return QueueClient(self.http, app.url, self.user_tokens.members[number])

    def queue_clients(self, app: AppProcess, count: int) -> list[QueueClient]:
        """The first so many."""
        return [self.queue_client(app, number) for number in range(count)]

    def queue_length(self) -> int:
        """How many requests are in line, taken or not."""
        return sum(self.redis.xlen(key) for key in self.redis.scan_iter("*:requests"))

    def stored_tickets(self) -> dict[Any, Any]:
        """All that Redis knows of who stands in line."""
        hashes = [self.redis.hgetall(key) for key in self.redis.scan_iter("*:tickets")]
        return {field: value for each in hashes for field, value in each.items()}

    def recorded_outcome(self, ticket_id: str) -> str:
        """The outcome that is kept of a ticket, read past the app."""
        ref = parse_ticket_id(ticket_id)
        assert ref is not None
        answers = self.mongo.get_default_database()["idempotency_records"]
        answer = answers.find_one({"_id": record_id(ref.requested_by, ref.key_hash)})
        assert answer is not None
        return str(answer["outcome"]["_type"])

    async def wait_until_empty(self) -> None:
        """Wait until nobody is in line."""

        async def is_empty() -> bool:
            return self.queue_length() == 0

        await eventually(is_empty, "an empty line")


@asynccontextmanager
async def open_queue_deployment(
    servers: EmbeddedServers, log_dir: Path, member_count: int
) -> AsyncIterator[QueueDeployment]:
    """A scene with so many people, an empty queue of its own, and nobody who serves it."""
    settings = {
        **app_environment(with_own_redis_database(servers), "queue"),
        "SLOTLOCK_QUEUE_WORKER": "off",
    }
    async with open_deployment(settings, log_dir, member_count) as scene:
        scene.redis.flushdb()
        yield QueueDeployment(**vars(scene))


@pytest.fixture
async def queue_deployment(
    servers: EmbeddedServers, log_dir: Path
) -> AsyncIterator[QueueDeployment]:
    """A scene with a few people, and nobody who serves the queue."""
    async with open_queue_deployment(servers, log_dir, 12) as scene:
        yield scene


@pytest.fixture
async def crowded_queue_deployment(
    servers: EmbeddedServers, log_dir: Path
) -> AsyncIterator[QueueDeployment]:
    """The same with 200 people."""
    async with open_queue_deployment(servers, log_dir, 200) as scene:
        yield scene
