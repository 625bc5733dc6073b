"""Everything that the tasks of a soak run share."""

import asyncio
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import httpx
from pymongo import MongoClient
from redis import Redis

from bench.soak.clients.client_user import ClientUser, sleep_until_set
from bench.soak.processes.apps import SoakApp, SoakWorker
from bench.soak.processes.servers import SoakServer
from bench.soak.run_log import ClientOperation, Json, RunLog, raw_id


@dataclass(slots=True, eq=False, kw_only=True)
class SoakUser(ClientUser):
    """A user with an address, who perhaps organizes."""

    email: str
    is_organizer: bool


@dataclass(slots=True, eq=False)
class SoakTeam:
    """A team as its members know it."""

    id: str
    members: list[SoakUser]


@dataclass(slots=True, eq=False)
class World:
    """Servers, processes, users and slots, and the last state of the database.

    `slots` holds the ids, in hex, of all slots that were not cancelled.
    `campaign_start_offsets_s` holds how long after its creation a slot of the campaign starts.
    `unpublished_periods` holds when the campaign was unpublished, in seconds since the epoch, and
    `hidden_periods` when its slots may have been hidden, which begins earlier and ends later.
    """

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
    slots: list[str] = field(default_factory=list)
    choice_groups: dict[str, str] = field(default_factory=dict)
    campaign: str = ""
    campaign_start_offsets_s: dict[str, float] = field(default_factory=dict)
    unpublished_periods: list[tuple[float, float]] = field(default_factory=list)
    hidden_periods: list[tuple[float, float]] = field(default_factory=list)
    resends: "asyncio.PriorityQueue[tuple[float, int, ClientOperation]]" = field(
        default_factory=asyncio.PriorityQueue
    )
    recent_operations: deque[ClientOperation] = field(default_factory=lambda: deque(maxlen=40))
    follow_tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    live_bookings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    free_places: dict[str, int] = field(default_factory=dict)

    def rng(self, name: str) -> random.Random:
        """Return a random generator that depends on the seed and this name only."""
        return random.Random(f"{self.seed}:{name}")

    @property
    def database(self) -> Any:
        """Return the database of the app, which only checks and chaos use directly."""
        return self.mongo.get_default_database()

    def remember_bookings(self, user_id: str, response: Json) -> None:
        """Add the bookings of a response to those that their users know."""
        booking = response.get("booking")
        for booked in response.get("bookings") or ([booking] if booking else []):
            owner_id = raw_id(booked["user"]["id"]) if "user" in booked else user_id
            for user in self.users:
                if user.id == owner_id and booked["id"] not in user.known_bookings:
                    user.known_bookings.append(booked["id"])

    async def sleep(self, seconds: float) -> bool:
        """Sleep at most until the end of the run, and return whether the run continues."""
        return await sleep_until_set(self.closing, seconds)
