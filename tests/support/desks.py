"""Two desks on real servers, in one event loop that a test owns, with a clock that it can move."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pymongo import MongoClient
from pymongo.database import Database
from redis import Redis

from slotlock.api.embedded import Servers
from slotlock.desk.availability import AvailabilityBoard
from slotlock.desk.desk import Desk
from slotlock.desk.line import Lines
from slotlock.desk.personal import PersonalBoard
from slotlock.desk.ticket_board import TicketBoard
from slotlock.domain.people import Caller, Role
from slotlock.stores import mongo
from slotlock.stores.announcements import Announcements
from slotlock.stores.answers import Answers
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.locks import Locks
from slotlock.stores.queue import Queue
from slotlock.stores.redis import RedisLine, redis_client
from slotlock.stores.resources import Resources
from slotlock.stores.slots import Slots
from slotlock.stores.teams import Teams
from slotlock.stores.trials import Trials
from slotlock.stores.users import Users
from slotlock.stores.writes import Changes, Writes
from tests.support.acts import MORNING
from tests.support.processes import database_url

MEMBERS = 5
COLLECTIONS = (
    "slots",
    "endedBookings",
    "endedWaits",
    "pages",
    "campaigns",
    "resources",
    "answers",
    "teams",
)

Json = dict[str, Any]


@dataclass
class Clock:
    """The time at every desk."""

    now: datetime = MORNING

    def __call__(self) -> datetime:
        """What it shows."""
        return self.now

    def jump(self, by: timedelta) -> None:
        """Move it on."""
        self.now += by


class HesitantWrites(Writes):
    """Writes that can be made to wait just before they are sent."""

    reached: asyncio.Event | None = None
    go: asyncio.Event

    def hesitate_once(self) -> asyncio.Event:
        """Let the next write wait for `go`; the event tells when it does."""
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        return self.reached

    async def commit(self, changes: Changes) -> bool:
        """Write, perhaps late."""
        if self.reached is not None:
            reached, self.reached = self.reached, None
            reached.set()
            await self.go.wait()
        return await super().commit(changes)


@dataclass
class House:
    """The desks, what is behind them as seen from outside, and the people."""

    runner: asyncio.Runner
    clock: Clock
    desks: list[Desk]
    truth: "Database[Json]"
    redis: Redis
    people: list[Caller] = field(default_factory=list)
    emails: dict[str, str] = field(default_factory=dict)

    @property
    def organiser(self) -> Caller:
        """The one who keeps the slots."""
        return self.people[-1]

    def writes(self, place: int) -> HesitantWrites:
        """The writes of a desk."""
        writes = self.desks[place].writes
        assert isinstance(writes, HesitantWrites)
        return writes

    def begin_anew(self) -> None:
        """Forget everything but the people."""
        for name in COLLECTIONS:
            self.truth[name].delete_many({})
        self.redis.flushall()
        self.clock.now = MORNING

    def lose_locks(self) -> None:
        """Let every lock and every queue in front of one run out."""
        if keys := list(self.redis.scan_iter("slotlock:{*")):
            self.redis.delete(*keys)


@contextmanager
def open_house(servers: Servers, name: str) -> Iterator[House]:
    """Two desks wired as the lifespan wires one, on a database of this name."""
    url, clock = database_url(servers, name), Clock()
    with (
        asyncio.Runner() as runner,
        MongoClient[Json](url, tz_aware=True, tzinfo=UTC) as client,
        Redis.from_url(servers.redis_url) as redis,
    ):
        closing = AsyncExitStack()
        truth = client.get_default_database()
        client.drop_database(truth.name)
        try:
            desks = [runner.run(_open(closing, url, servers.redis_url, clock)) for _ in range(2)]
            house = House(runner, clock, desks, truth, redis)
            runner.run(_meet_people(house))
            house.begin_anew()
            yield house
        finally:
            runner.run(closing.aclose())


async def _open(closing: AsyncExitStack, mongo_url: str, redis_url: str, clock: Clock) -> Desk:
    client, database = mongo.connect(mongo_url)
    closing.push_async_callback(client.close)
    redis = redis_client(redis_url)
    line = RedisLine(redis)
    closing.push_async_callback(line.close)
    slots, locks = Slots(database), Locks(line)
    board, personal = AvailabilityBoard(slots, clock), PersonalBoard(slots, clock)
    tickets = TicketBoard()
    desk = Desk(
        slots=slots,
        writes=HesitantWrites(database),
        answers=Answers(database),
        users=Users(database),
        teams=Teams(database),
        campaigns=Campaigns(database),
        resources=Resources(database),
        trials=Trials(database),
        locks=locks,
        lines=Lines(),
        queue=Queue(line),
        board=board,
        personal=personal,
        tickets=tickets,
        announcements=Announcements(
            redis, line, heard=board.tell, poked=personal.poke, moved=tickets.moved
        ),
        now=clock,
    )
    for store in (desk.slots, desk.answers, desk.users, desk.teams, desk.campaigns):
        await store.prepare()
    await locks.start()
    closing.push_async_callback(locks.stop)
    return desk


async def _meet_people(house: House) -> None:
    for number in range(MEMBERS + 1):
        role, email = Role.MEMBER, f"{number}@slotlock.test"
        if number == MEMBERS:
            role = Role.ORGANIZER
        user = await house.desks[0].users.add("Somebody", email, role, "no password", MORNING)
        assert user is not None
        house.people.append(Caller(user.id, role, "session", MORNING))
        house.emails[user.id] = email
