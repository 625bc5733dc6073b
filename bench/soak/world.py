"""Everything that the tasks of a long run share."""

import asyncio
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import httpx
from pymongo import MongoClient
from redis import Redis

from bench.soak.processes.apps import SoakApp, SoakWorker
from bench.soak.processes.servers import SoakServer
from bench.soak.run_log import ClientOperation, Json, RunLog, raw_id


@dataclass(slots=True, eq=False)
class SoakUser:
    """Somebody with a fate of their own: what they do follows from the seed and their index."""

    index: int
    id: str  # in hex
    email: str
    token: str
    is_organizer: bool
    rng: random.Random
    key_count: int = 0
    known_bookings: deque[str] = field(default_factory=lambda: deque(maxlen=8))

    def next_key(self) -> str:
        """A key they never sent."""
        self.key_count += 1
        return f"soak-{self.index}-{self.key_count}"


@dataclass(slots=True, eq=False)
class SoakTeam:
    """A team as its members believe it to be."""

    id: str
    members: list[SoakUser]


@dataclass(slots=True, eq=False)
class World:
    """The stage: servers, processes, people, slots, and the last look at the truth."""

    seed: int
    seconds: float
    run_log: RunLog
    mongod: SoakServer
    valkey: SoakServer
    mongo_url: str
    apps: list[SoakApp]
    http: httpx.AsyncClient
    mongo: "MongoClient[Json]"
    redis: "Redis"
    worker: SoakWorker
    users: list[SoakUser] = field(default_factory=list)
    teams: list[SoakTeam] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)  # in hex, those that are open
    choice_groups: dict[str, str] = field(default_factory=dict)
    campaign: str = ""
    campaign_start_offsets_s: dict[str, float] = field(
        default_factory=dict
    )  # how long after now they began
    unpublished_periods: list[tuple[float, float]] = field(
        default_factory=list
    )  # since when, until when
    resends: "asyncio.PriorityQueue[tuple[float, int, ClientOperation]]" = field(
        default_factory=asyncio.PriorityQueue
    )
    recent_operations: deque[ClientOperation] = field(default_factory=lambda: deque(maxlen=40))
    follow_tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    live_bookings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    free_places: dict[str, int] = field(default_factory=dict)

    def rng(self, name: str) -> random.Random:
        """Chance of its own for each who needs it, so that none disturbs another's."""
        return random.Random(f"{self.seed}:{name}")

    @property
    def database(self) -> Any:
        """The database as it lies, past the app; only what cannot be undone is read."""
        return self.mongo.get_default_database()

    def remember_bookings(self, user_id: str, response: Json) -> None:
        """Let everybody know of the bookings that they have now."""
        booking = response.get("booking")
        made = response.get("bookings") or ([booking] if booking else [])
        for each in made:
            owner = raw_id(each["user"]["id"]) if "user" in each else user_id
            for person in self.users:
                if person.id == owner and each["id"] not in person.known_bookings:
                    person.known_bookings.append(each["id"])

    async def sleep(self, seconds: float) -> bool:
        """Sleep, but not past the end of the run; whether it goes on."""
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            return True
        return False
