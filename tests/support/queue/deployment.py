"""Deployments with an admission queue of their own, which no process serves until a test says so.

Workers serve the queue of a Redis database for every MongoDB, so these deployments use a database
of Redis that no other test uses.
"""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.graphql.core.ids import parse_ticket_id
from slotlock.infrastructure.redis.admission.partitions import QueuePartition
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.container import Services
from slotlock.services.idempotency_key import record_id
from tests.support.apps.deployment import (
    Deployment,
    PausePoint,
    StartApp,
    app_variant,
    open_deployment,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import QUEUE_PARTITIONS, AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json
from tests.support.polling import eventually, poll_until
from tests.support.queue.documents import (
    CANCEL_TICKET,
    MY_TICKETS,
    REQUEST_BOOKING,
    TICKET_BY_ID,
)


class QueueClient(BookingClient):
    """A client that books through the admission queue."""

    async def request_booking(self, slot_id: str, **options: Any) -> Json:
        """Request a booking. Returns a ticket or a refusal."""
        outcome: Json = await self.execute(REQUEST_BOOKING, input={"slotId": slot_id, **options})
        return outcome

    async def enqueue(self, slot_id: str, **options: Any) -> Json:
        """Request a booking and return its ticket, which a running worker may have answered."""
        outcome = await self.request_booking(slot_id, **options)
        assert outcome["__typename"] == "Ticket", outcome
        return outcome

    async def fetch_ticket(self, ticket_id: str) -> Any:
        """Return the present state of a ticket."""
        return await self.execute(TICKET_BY_ID, id=ticket_id)

    async def cancel_ticket(self, ticket_id: str) -> Json:
        """Cancel a request. Returns the cancelled ticket with its type, or a refusal."""
        outcome: Json = await self.execute(CANCEL_TICKET, id=ticket_id)
        return outcome

    async def fetch_own_tickets(self, **page: Any) -> Json:
        """Return a page of the tickets of this user."""
        found: Json = await self.execute(MY_TICKETS, **page)
        return found

    async def wait_for_outcome(self, ticket_id: str) -> Json:
        """Wait until a ticket is answered, and return the outcome."""
        ticket = await poll_until(
            lambda: self.fetch_ticket(ticket_id),
            lambda seen: seen["status"] != "QUEUED",
            "an outcome",
        )
        assert ticket["status"] == "ANSWERED", ticket
        assert ticket["position"] is None
        outcome: Json = ticket["outcome"]
        return outcome

    async def wait_for_outcome_code(self, ticket_id: str) -> str:
        """Wait until a ticket is answered. Returns the code of the refusal, or the type name."""
        outcome = await self.wait_for_outcome(ticket_id)
        return str(outcome.get("code", outcome["__typename"]))


def with_own_redis_database(servers: EmbeddedServers) -> EmbeddedServers:
    """Return the same servers with a database of Redis that no other test uses."""
    return replace(servers, redis_url=f"{servers.redis_url}/9")


def queue_partition(slot_global_id: str) -> int:
    """Return the partition of a slot."""
    return crc32(slot_global_id[-24:].encode()) % QUEUE_PARTITIONS


async def serve_queued_requests(services: Services, slot_id: SlotId) -> None:
    """Process the queued requests for a slot, which must be alone in its partition."""
    partition = QueuePartition(
        services.admission_queue.pipeline, services.admission_queue.partition_of(slot_id)
    )
    entries = await partition.read_new()
    await partition.acknowledge(slot_id, await serve_batch(services, slot_id, entries))


@dataclass
class SharedFrontends:
    """Apps that serve no queue and have all guards, which the tests of a module share."""

    environment: Mapping[str, str]
    directory: Path
    stack: ExitStack
    running: list[AppProcess] = field(default_factory=list)

    def find(self, number: int) -> AppProcess:
        """Return one of them, which starts if it does not run."""
        while len(self.running) <= number:
            directory = self.directory / secrets.token_hex(4)
            self.running.append(self.stack.enter_context(forked_app(self.environment, directory)))
        return self.running[number]


@dataclass
class QueueDeployment(Deployment):
    """A deployment whose queue is not served until a test starts a worker."""

    frontends: SharedFrontends
    frontend_count: int = 0

    def app(
        self,
        without_guards: str = "",
        pause_at: str = "",
        pause_point: PausePoint | None = None,
        start: StartApp = forked_app,
    ) -> AppProcess:
        """Return another of the shared apps; start one without these guards, or that pauses."""
        if without_guards or pause_at or start is not forked_app:
            return super().app(without_guards, pause_at, pause_point, start)
        self.frontend_count += 1
        return self.frontends.find(self.frontend_count - 1)

    def frontend(self, without_guards: str = "", max_queue_length: int = 1_000) -> AppProcess:
        """Start an app that serves no queue, with this maximum length of a partition."""
        return self._start_process({"SLOTLOCK_QUEUE_LENGTH": str(max_queue_length)}, without_guards)

    def worker(
        self, without_guards: str = "", pause_at: str = "", pause_point: PausePoint | None = None
    ) -> AppProcess:
        """Start an app that serves the queue as well."""
        return self._start_process(
            {"SLOTLOCK_QUEUE_WORKER": "on"}, without_guards, pause_at, pause_point
        )

    def stalled_worker(self, without_guards: str = "", pause_at: str = "batch") -> PausePoint:
        """Start a worker that pauses with its first batch, or with each one at "batches"."""
        pause_point = PausePoint(self.redis)
        self.worker(without_guards, pause_at, pause_point)
        return pause_point

    def _start_process(
        self,
        overrides: Mapping[str, str],
        without_guards: str = "",
        pause_at: str = "",
        pause_point: PausePoint | None = None,
    ) -> AppProcess:
        return self.stack.enter_context(
            app_variant(
                {**self.environment, **overrides},
                self.log_dir / secrets.token_hex(4),
                without_guards=without_guards,
                pause_at=pause_at,
                pause_point=pause_point,
            )
        )

    def queue_client(self, app: AppProcess, number: int) -> QueueClient:
        """Return the client of a member at an app. A number is the same member everywhere."""
        return QueueClient(self.http, app.url, self.user_tokens.members[number])

    def queue_clients(self, app: AppProcess, count: int) -> list[QueueClient]:
        """Return the clients of the first members."""
        return [self.queue_client(app, number) for number in range(count)]

    def queue_length(self) -> int:
        """Return how many requests are queued, delivered or not."""
        return sum(self.redis.xlen(key) for key in self.redis.scan_iter("*:requests"))

    def stored_tickets(self) -> dict[Any, Any]:
        """Return all fields that Redis stores about queued requests."""
        hashes = [self.redis.hgetall(key) for key in self.redis.scan_iter("*:tickets")]
        return {field: value for each in hashes for field, value in each.items()}

    def recorded_outcome(self, ticket_id: str) -> str:
        """Return the type of the outcome that MongoDB stores for a ticket."""
        ref = parse_ticket_id(ticket_id)
        assert ref is not None
        records = self.mongo.get_default_database()["idempotency_records"]
        record = records.find_one({"_id": record_id(ref.requested_by, ref.key_hash)})
        assert record is not None
        return str(record["outcome"]["_type"])

    async def wait_until_empty(self) -> None:
        """Wait until no request is queued."""
        await eventually(lambda: self.queue_length() == 0, "an empty queue")


@asynccontextmanager
async def open_queue_deployment(
    frontends: SharedFrontends, log_dir: Path, member_count: int
) -> AsyncIterator[QueueDeployment]:
    """Open a deployment with this many members and an empty queue."""
    async with open_deployment(frontends.environment, log_dir, member_count) as deployment:
        deployment.redis.flushdb()
        yield QueueDeployment(**vars(deployment), frontends=frontends)


@contextmanager
def open_shared_frontends(servers: EmbeddedServers, directory: Path) -> Iterator[SharedFrontends]:
    """Yield apps that serve no queue, none of which runs yet."""
    environment = {
        **app_environment(with_own_redis_database(servers), "queue"),
        "SLOTLOCK_QUEUE_WORKER": "off",
    }
    with ExitStack() as stack:
        yield SharedFrontends(environment, directory, stack)


@pytest.fixture
async def queue_deployment(
    queue_frontends: SharedFrontends, log_dir: Path
) -> AsyncIterator[QueueDeployment]:
    """Yield a deployment with 16 members whose queue is not served."""
    async with open_queue_deployment(queue_frontends, log_dir, 16) as deployment:
        yield deployment


@pytest.fixture
async def crowded_queue_deployment(
    queue_frontends: SharedFrontends, log_dir: Path
) -> AsyncIterator[QueueDeployment]:
    """Yield a deployment with 60 members whose queue is not served."""
    async with open_queue_deployment(queue_frontends, log_dir, 60) as deployment:
        yield deployment
