"""Deployments for race tests: variants of the app, users, and access to MongoDB and Redis."""

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

import httpx
from bson import ObjectId
from pymongo import MongoClient
from redis import Redis

from slotlock.infrastructure.redis.keys import lock_keys
from tests.support.apps.fork_server import forked_app, forked_worker
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json, http_client
from tests.support.polling import wait_until
from tests.support.stores.users import UserTokens, create_user_tokens

PAUSE_TIMEOUT_S = 30
StartApp = Callable[[Mapping[str, str], Path], AbstractContextManager[AppProcess]]


@dataclass
class PausePoint:
    """The test's side of a pause point: see `pause_points`."""

    redis: Redis
    key: str = field(default_factory=lambda: f"pause:{secrets.token_hex(6)}")

    def wait_until_reached(self) -> None:
        """Block until the process pauses."""
        # Not BLPOP: the Redis client closes its connection after 5 s without a response.
        paused = f"{self.key}:paused"
        wait_until(
            lambda: self.redis.lpop(paused) is not None, "the process pauses", PAUSE_TIMEOUT_S
        )

    def resume(self) -> None:
        """Let the paused process continue."""
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
    """Run a process of the app without these guards, which pauses at this point."""
    # Hashing the administrator's password takes most of the start of a forked process.
    settings = {name: value for name, value in environment.items() if "ADMIN" not in name}
    settings["VARIANT_WITHOUT_GUARDS"] = without_guards
    if pause_point is not None:
        settings |= {"VARIANT_PAUSE_AT": pause_at, "VARIANT_PAUSE_KEY": pause_point.key}
    with start(settings, directory) as app:
        yield app


@dataclass
class Deployment:
    """Users, and processes of the app that start on demand with or without guards."""

    environment: Mapping[str, str]
    log_dir: Path
    redis: Redis
    mongo: MongoClient[Json]
    http: httpx.AsyncClient
    user_tokens: UserTokens
    stack: ExitStack

    @property
    def mongo_url(self) -> str:
        """The URL of the database."""
        return self.environment["SLOTLOCK_MONGO_URL"]

    def app(
        self,
        without_guards: str = "",
        pause_at: str = "",
        pause_point: PausePoint | None = None,
        start: StartApp = forked_app,
    ) -> AppProcess:
        """Start a process without these guards, which pauses at this point."""
        directory = self.log_dir / secrets.token_hex(4)
        return self.stack.enter_context(
            app_variant(
                self.environment,
                directory,
                without_guards=without_guards,
                pause_at=pause_at,
                pause_point=pause_point,
                start=start,
            )
        )

    def worker(self, without_guards: str = "") -> AppProcess:
        """Start a process without these guards that only processes the admission queue."""
        return self.app(without_guards, start=forked_worker)

    def paused_worker(
        self, pause_at: str, without_guards: str = ""
    ) -> tuple[AppProcess, PausePoint]:
        """Start a worker without these guards that pauses when it first reaches the point."""
        pause_point = PausePoint(self.redis)
        return self.app(without_guards, pause_at, pause_point, forked_worker), pause_point

    def paused_app(self, pause_at: str, without_guards: str = "") -> tuple[AppProcess, PausePoint]:
        """Start a process without these guards that pauses when it first reaches the point."""
        pause_point = PausePoint(self.redis)
        return self.app(without_guards, pause_at, pause_point), pause_point

    def client(self, app: AppProcess, number: int) -> BookingClient:
        """Return a member's client of a process. A number is the same user at every process."""
        return BookingClient(self.http, app.url, self.user_tokens.members[number])

    def clients(self, app: AppProcess, count: int) -> list[BookingClient]:
        """Return clients of the first members."""
        return [self.client(app, number) for number in range(count)]

    def organizer(self, app: AppProcess) -> BookingClient:
        """Return the organizer's client of a process."""
        return BookingClient(self.http, app.url, self.user_tokens.organizer)

    async def add_slot(self, app: AppProcess, **fields: object) -> str:
        """Create a slot as the organizer and return its id."""
        return str((await self.organizer(app).create_slot(**fields))["id"])

    async def wait_for_releases(self, app: AppProcess) -> None:
        """Wait until Redis has executed the releases of a process, which no response waits for.

        A process sends its commands in order, so that its next acquisition comes after them.
        """
        await self.client(app, -1).book_slot(await self.add_slot(app))

    def slot_document(self, slot_id: str) -> Json:
        """Return the document of a slot."""
        return find_slot_document(self.mongo, slot_id)

    def booking_ids(self, slot_id: str) -> set[str]:
        """Return the object ids of the live bookings of a slot."""
        return {str(booking["id"]) for booking in self.slot_document(slot_id)["bookings"]}

    def consistent_booking_ids(self, slot_id: str) -> set[str]:
        """Return the object ids of the live bookings of a slot, whose counts must match them."""
        slot = self.slot_document(slot_id)
        assert slot["capacity"] - slot["remaining"] == len(slot["bookings"])
        assert slot["remaining"] >= 0
        return {str(booking["id"]) for booking in slot["bookings"]}

    def ended_booking(self, booking_id: str) -> Json | None:
        """Return the document of an ended booking, if it exists."""
        collection = self.mongo.get_default_database()["ended_bookings"]
        return collection.find_one({"_id": object_id(booking_id)})


@asynccontextmanager
async def open_deployment(
    environment: Mapping[str, str], log_dir: Path, member_count: int = 12
) -> AsyncIterator[Deployment]:
    """Open a deployment on the servers of this environment. Its processes end with it."""
    user_tokens = create_user_tokens(environment, member_count)
    with ExitStack() as stack:
        # Longer than any pause; the default of the client is 5 s.
        redis = Redis.from_url(environment["SLOTLOCK_REDIS_URL"], socket_timeout=60)
        stack.enter_context(redis)
        mongo = MongoClient[Json](environment["SLOTLOCK_MONGO_URL"])
        stack.callback(mongo.close)
        async with http_client() as http:
            yield Deployment(environment, log_dir, redis, mongo, http, user_tokens, stack)


async def kill_at_pause(
    pause_point: PausePoint, app: AppProcess, request: Awaitable[object]
) -> None:
    """Send a request and kill the process when it pauses."""
    pending = asyncio.ensure_future(request)
    await asyncio.to_thread(pause_point.wait_until_reached)
    app.kill()
    await asyncio.gather(pending, return_exceptions=True)


def object_id(global_id: str) -> ObjectId:
    """Return the object id at the end of a global id."""
    return ObjectId(global_id[-24:])


def lock_key(slot_global_id: str) -> str:
    """Return the Redis key of a slot's lock."""
    return lock_keys(slot_global_id.removeprefix("slot_")).lock


def wait_until_released(redis: Redis, slot_global_id: str) -> None:
    """Wait until a slot is not locked, for less time than its lock would need to expire."""
    wait_until(lambda: not redis.exists(lock_key(slot_global_id)), "no lock is left", timeout_s=5)


def find_slot_document(client: MongoClient[Json], slot_global_id: str) -> Json:
    """Return the document of a slot in the default database of a client."""
    slot = client.get_default_database()["slots"].find_one({"_id": object_id(slot_global_id)})
    assert slot is not None
    return slot


def slot_document(mongo_url: str, slot_global_id: str) -> Json:
    """Return the document of a slot in this database."""
    with closing(MongoClient[Json](mongo_url)) as client:
        return find_slot_document(client, slot_global_id)


def assert_slot_consistent(slot: Json, places_taken: int) -> None:
    """Assert the number of bookings, at most one per user, and a matching count of free places."""
    users = [booking["user"] for booking in slot["bookings"]]
    assert len(users) == places_taken
    assert len(set(users)) == len(users)
    assert slot["remaining"] == slot["capacity"] - places_taken >= 0
