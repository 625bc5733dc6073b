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

from tests.support.client import http_client
from tests.support.desk import Person
from tests.support.people import Crowd, make_crowd
from tests.support.processes import AppProcess, wait_until
from tests.support.troupe import forked_app, forked_worker

Start = Callable[[Mapping[str, str], Path], AbstractContextManager[AppProcess]]


@dataclass
class Stage:
    """A paused act, followed and freed by its name."""

    redis: Redis
    name: str = field(default_factory=lambda: f"stage:{secrets.token_hex(6)}")

    def wait_until_reached(self) -> None:
        """Wait until the act is at its point."""
        # Not BLPOP: a client of Redis gives up by itself, after 5 s unless it is told otherwise.
        reached = f"{self.name}:reached"
        wait_until(lambda: self.redis.lpop(reached) is not None, "the act got there", 30)

    def go(self) -> None:
        """Let the act go on."""
        self.redis.lpush(f"{self.name}:go", "go")


@contextmanager
def variant(
    environment: Mapping[str, str],
    directory: Path,
    *,
    off: str = "",
    pause: str = "",
    stage: Stage | None = None,
    start: Start = forked_app,
) -> Iterator[AppProcess]:
    """A process of the app without these guards, that waits at this point."""
    # No administrator: hashing their password is most of what is left of a start.
    settings = {name: value for name, value in environment.items() if "ADMIN" not in name}
    settings["VARIANT_OFF"] = off
    if stage is not None:
        settings |= {"VARIANT_PAUSE": pause, "VARIANT_STAGE": stage.name}
    with start(settings, directory) as app:
        yield app


@dataclass
class Scene:
    """What a scene is played with: people, and processes of the app with and without guards."""

    environment: Mapping[str, str]
    logs: Path
    redis: Redis
    mongo: MongoClient[dict[str, Any]]
    http: httpx.AsyncClient
    crowd: Crowd
    stack: ExitStack

    @property
    def mongo_url(self) -> str:
        """Where the truth is."""
        return self.environment["SLOTLOCK_MONGO_URL"]

    def _find(self, collection: str, gid: str) -> dict[str, Any] | None:
        return self.mongo.get_default_database()[collection].find_one({"_id": ObjectId(gid[-24:])})

    def app(
        self, off: str = "", pause: str = "", stage: Stage | None = None, start: Start = forked_app
    ) -> AppProcess:
        """A process without these guards, that stops at this point."""
        where = self.logs / secrets.token_hex(4)
        return self.stack.enter_context(
            variant(self.environment, where, off=off, pause=pause, stage=stage, start=start)
        )

    def worker(self, off: str = "") -> AppProcess:
        """A process without these guards that serves the admission queue and nothing else."""
        return self.app(off, start=forked_worker)

    def paused_worker(self, point: str, off: str = "") -> tuple[AppProcess, Stage]:
        """The same, that stops where it first gets to the point."""
        stage = Stage(self.redis)
        return self.app(off, point, stage, forked_worker), stage

    def paused(self, point: str, off: str = "") -> tuple[AppProcess, Stage]:
        """A process without these guards whose first act at the point stops there."""
        stage = Stage(self.redis)
        return self.app(off, point, stage), stage

    def person(self, app: AppProcess, number: int) -> Person:
        """Somebody at a process: the same number is the same person at each."""
        return Person(self.http, app.url, self.crowd.members[number])

    def people(self, app: AppProcess, size: int) -> list[Person]:
        """The first so many."""
        return [self.person(app, number) for number in range(size)]

    def organiser(self, app: AppProcess) -> Person:
        """The organiser at a process."""
        return Person(self.http, app.url, self.crowd.organiser)

    async def slot(self, app: AppProcess, **fields: Any) -> str:
        """The id of a new slot."""
        return str((await self.organiser(app).create_slot(**fields))["id"])

    def truth(self, slot_id: str) -> dict[str, Any]:
        """What MongoDB says of a slot."""
        slot = self._find("slots", slot_id)
        assert slot is not None
        return slot

    def who(self, slot_id: str) -> set[str]:
        """The ids of the live bookings of a slot, without what names their kind."""
        return {str(booking["id"]) for booking in self.truth(slot_id)["bookings"]}

    def live(self, slot_id: str) -> set[str]:
        """The ids of the live bookings of a slot whose count of places agrees with them."""
        truth = self.truth(slot_id)
        assert truth["capacity"] - truth["remaining"] == len(truth["bookings"])
        assert truth["remaining"] >= 0
        return {str(booking["id"]) for booking in truth["bookings"]}

    def ended(self, booking_id: str) -> dict[str, Any] | None:
        """What MongoDB keeps of a booking that ended."""
        return self._find("endedBookings", booking_id)


@asynccontextmanager
async def scene_on(
    environment: Mapping[str, str], logs: Path, people: int = 12
) -> AsyncIterator[Scene]:
    """A scene in the database of this environment; its processes end with it."""
    crowd = await make_crowd(environment, people)
    with ExitStack() as stack:
        # Longer than any wait for a paused act; the client's own limit is 5 s.
        redis = Redis.from_url(environment["SLOTLOCK_REDIS_URL"], socket_timeout=60)
        stack.enter_context(redis)
        mongo = MongoClient[dict[str, Any]](environment["SLOTLOCK_MONGO_URL"])
        stack.callback(mongo.close)
        async with http_client() as http:
            yield Scene(environment, logs, redis, mongo, http, crowd, stack)


async def killed_at(stage: Stage, app: AppProcess, asked: Awaitable[Any]) -> None:
    """Let somebody ask, and kill the process when their act is at its point."""
    asking = asyncio.ensure_future(asked)
    await asyncio.to_thread(stage.wait_until_reached)
    app.kill()
    await asyncio.gather(asking, return_exceptions=True)


def lock_key(slot_gid: str) -> str:
    """The key of a slot's lock, as operators may look it up."""
    return f"slotlock:{{{slot_gid.removeprefix('slot_')}}}:lock"


def slot_document(mongo_url: str, slot_gid: str) -> dict[str, Any]:
    """The truth about a slot, read past the app."""
    with closing(MongoClient[dict[str, Any]](mongo_url)) as client:
        slots = client.get_default_database()["slots"]
        document = slots.find_one({"_id": ObjectId(slot_gid.removeprefix("slot_"))})
    assert document is not None
    return document


def assert_whole(document: Mapping[str, Any], places_taken: int) -> None:
    """The slot has so many bookings, one a person, and its count of places agrees."""
    users = [booking["user"] for booking in document["bookings"]]
    assert len(users) == places_taken
    assert len(set(users)) == len(users)
    assert document["remaining"] == document["capacity"] - places_taken >= 0
