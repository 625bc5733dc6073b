"""Where races are staged: variants of the app, the lock's key, and what MongoDB says in the end."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from bson import ObjectId
from pymongo import MongoClient
from redis import Redis

from slotlock.infrastructure.redis.keys import lock_keys
from tests.support.apps.fork_server import forked_app, forked_worker
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import http_client
from tests.support.polling import wait_until
from tests.support.stores.users import UserTokens, create_user_tokens

StartApp = Callable[[Mapping[str, str], Path], AbstractContextManager[AppProcess]]


@dataclass
class PausePoint:
    """A paused act, followed and freed by its name."""

    redis: Redis
    key: str = field(default_factory=lambda: f"pause:{secrets.token_hex(6)}")

    def wait_until_reached(self) -> None:
        """Wait until the act is at its point."""
        # Not BLPOP: a client of Redis gives up by itself, after 5 s unless it is told otherwise.
        paused = f"{self.key}:paused"
        wait_until(lambda: self.redis.lpop(paused) is not None, "the act got there", 30)

    def resume(self) -> None:
        """Let the act go on."""
        self.redis.lpush(f"{self.key}:resume", "resume")


@contextmanager
def app_variant(
    environment: Mapping[str, str],
    directory: Path,
    *,
    without_guards: str = "",
    pause_at: str = "",
    pause_point: PausePoint | None = None,
    start: StartApp = forked_app,
) -> Iterator[AppProcess]:
    """A process of the app without these guards, that waits at this point."""
    # No administrator: hashing their password is most of what is left of a start.
    settings = {name: value for name, value in environment.items() if "ADMIN" not in name}
    settings["VARIANT_WITHOUT_GUARDS"] = without_guards
    if pause_point is not None:
        settings |= {"VARIANT_PAUSE_AT": pause_at, "VARIANT_PAUSE_KEY": pause_point.key}
    with start(settings, directory) as app:
        yield app


@dataclass
class Deployment:
    """What a scene is played with: people, and processes of the app with and without guards."""

    environment: Mapping[str, str]
    log_dir: Path
    redis: Redis
    mongo: MongoClient[dict[str, Any]]
    http: httpx.AsyncClient
    user_tokens: UserTokens
    stack: ExitStack

    @property
    def mongo_url(self) -> str:
        """Where the truth is."""
        return self.environment["SLOTLOCK_MONGO_URL"]

    def _find_document(self, collection: str, global_id: str) -> dict[str, Any] | None:
        return self.mongo.get_default_database()[collection].find_one(
            {"_id": ObjectId(global_id[-24:])}
        )

    def app(
        self,
        without_guards: str = "",
        pause_at: str = "",
        pause_point: PausePoint | None = None,
        start: StartApp = forked_app,
    ) -> AppProcess:
        """A process without these guards, that stops at this point."""
        where = self.log_dir / secrets.token_hex(4)
        return self.stack.enter_context(
            app_variant(
                self.environment,
                where,
                without_guards=without_guards,
                pause_at=pause_at,
                pause_point=pause_point,
                start=start,
            )
        )

    def worker(self, without_guards: str = "") -> AppProcess:
        """A process without these guards that serves the admission queue and nothing else."""
        return self.app(without_guards, start=forked_worker)

    def paused_worker(
        self, pause_at: str, without_guards: str = ""
    ) -> tuple[AppProcess, PausePoint]:
        """The same, that stops where it first gets to the point."""
        stage = PausePoint(self.redis)
        return self.app(without_guards, pause_at, stage, forked_worker), stage

    def paused_app(self, pause_at: str, without_guards: str = "") -> tuple[AppProcess, PausePoint]:
        """A process without these guards whose first act at the point stops there."""
        stage = PausePoint(self.redis)
        return self.app(without_guards, pause_at, stage), stage

    def client(self, app: AppProcess, number: int) -> BookingClient:
        """Somebody at a process: the same number is the same person at each."""
        return BookingClient(self.http, app.url, self.user_tokens.members[number])

    def clients(self, app: AppProcess, count: int) -> list[BookingClient]:
        """The first so many."""
        return [self.client(app, number) for number in range(count)]

    def organizer(self, app: AppProcess) -> BookingClient:
        """The organiser at a process."""
        return BookingClient(self.http, app.url, self.user_tokens.organizer)

    async def add_slot(self, app: AppProcess, **fields: Any) -> str:
        """The id of a new slot."""
        return str((await self.organizer(app).create_slot(**fields))["id"])

    def slot_document(self, slot_id: str) -> dict[str, Any]:
        """What MongoDB says of a slot."""
        slot = self._find_document("slots", slot_id)
        assert slot is not None
        return slot

    def booking_ids(self, slot_id: str) -> set[str]:
        """The ids of the live bookings of a slot, without what names their kind."""
        return {str(booking["id"]) for booking in self.slot_document(slot_id)["bookings"]}

    def consistent_booking_ids(self, slot_id: str) -> set[str]:
        """The ids of the live bookings of a slot whose count of places agrees with them."""
        truth = self.slot_document(slot_id)
        assert truth["capacity"] - truth["remaining"] == len(truth["bookings"])
        assert truth["remaining"] >= 0
        return {str(booking["id"]) for booking in truth["bookings"]}

    def ended_booking(self, booking_id: str) -> dict[str, Any] | None:
        """What MongoDB keeps of a booking that ended."""
        return self._find_document("ended_bookings", booking_id)


@asynccontextmanager
async def open_deployment(
    environment: Mapping[str, str], log_dir: Path, member_count: int = 12
) -> AsyncIterator[Deployment]:
    """A scene in the database of this environment; its processes end with it."""
    crowd = await create_user_tokens(environment, member_count)
    with ExitStack() as stack:
        # Longer than any wait for a paused act; the client's own limit is 5 s.
        redis = Redis.from_url(environment["SLOTLOCK_REDIS_URL"], socket_timeout=60)
        stack.enter_context(redis)
        mongo = MongoClient[dict[str, Any]](environment["SLOTLOCK_MONGO_URL"])
        stack.callback(mongo.close)
        async with http_client() as http:
            yield Deployment(environment, log_dir, redis, mongo, http, crowd, stack)


async def kill_at_pause(pause_point: PausePoint, app: AppProcess, request: Awaitable[Any]) -> None:
    """Let somebody ask, and kill the process when their act is at its point."""
    asking = asyncio.ensure_future(request)
    await asyncio.to_thread(pause_point.wait_until_reached)
    app.kill()
    await asyncio.gather(asking, return_exceptions=True)


def lock_key(slot_global_id: str) -> str:
    """The key of a slot's lock, as operators may look it up."""
    return lock_keys(slot_global_id.removeprefix("slot_")).lock


def slot_document(mongo_url: str, slot_global_id: str) -> dict[str, Any]:
    """The truth about a slot, read past the app."""
    with closing(MongoClient[dict[str, Any]](mongo_url)) as client:
        slots = client.get_default_database()["slots"]
        document = slots.find_one({"_id": ObjectId(slot_global_id.removeprefix("slot_"))})
    assert document is not None
    return document


def assert_slot_consistent(document: Mapping[str, Any], places_taken: int) -> None:
    """The slot has so many bookings, one a person, and its count of places agrees."""
    users = [booking["user"] for booking in document["bookings"]]
    assert len(users) == places_taken
    assert len(set(users)) == len(users)
    assert document["remaining"] == document["capacity"] - places_taken >= 0
