"""Everything that the tasks of a long run share."""

import asyncio
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import httpx
from pymongo import MongoClient
from redis import Redis

from bench.soak.apps import App, Worker
from bench.soak.ledger import Act, Json, Ledger, hex_of
from bench.soak.servers import Server


@dataclass(slots=True, eq=False)
class Person:
    """Somebody with a fate of their own: what they do follows from the seed and their index."""

    index: int
    id: str  # in hex
    email: str
    token: str
    organises: bool
    rng: random.Random
    keys: int = 0
    known: deque[str] = field(default_factory=lambda: deque(maxlen=8))

    def next_key(self) -> str:
        """A key they never sent."""
        self.keys += 1
        return f"soak-{self.index}-{self.keys}"


@dataclass(slots=True, eq=False)
class Team:
    """A team as its members believe it to be."""

    id: str
    members: list[Person]


@dataclass(slots=True, eq=False)
class World:
    """The stage: servers, processes, people, slots, and the last look at the truth."""

    seed: int
    seconds: float
    ledger: Ledger
    mongod: Server
    valkey: Server
    mongo_url: str
    apps: list[App]
    http: httpx.AsyncClient
    mongo: "MongoClient[Json]"
    redis: "Redis"
    worker: Worker
    people: list[Person] = field(default_factory=list)
    teams: list[Team] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)  # in hex, those that are open
    choices: dict[str, str] = field(default_factory=dict)
    campaign: str = ""
    in_campaign: dict[str, float] = field(default_factory=dict)  # how long after now they began
    shut: list[tuple[float, float]] = field(default_factory=list)  # since when, until when
    resends: "asyncio.PriorityQueue[tuple[float, int, Act]]" = field(
        default_factory=asyncio.PriorityQueue
    )
    recent: deque[Act] = field(default_factory=lambda: deque(maxlen=40))
    following: "set[asyncio.Task[None]]" = field(default_factory=set)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    live: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    free: dict[str, int] = field(default_factory=dict)

    def rng(self, name: str) -> random.Random:
        """Chance of its own for each who needs it, so that none disturbs another's."""
        return random.Random(f"{self.seed}:{name}")

    @property
    def truth(self) -> Any:
        """The database as it lies, past the app; only what cannot be undone is read."""
        return self.mongo.get_default_database()

    def remember(self, by: str, answer: Json) -> None:
        """Let everybody know of the bookings that they have now."""
        booking = answer.get("booking")
        made = answer.get("bookings") or ([booking] if booking else [])
        for each in made:
            owner = hex_of(each["user"]["id"]) if "user" in each else by
            for person in self.people:
                if person.id == owner and each["id"] not in person.known:
                    person.known.append(each["id"])

    async def sleep(self, seconds: float) -> bool:
        """Sleep, but not past the end of the run; whether it goes on."""
        try:
            async with asyncio.timeout(seconds):
                await self.closing.wait()
        except TimeoutError:
            return True
        return False
