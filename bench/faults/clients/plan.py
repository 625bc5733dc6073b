"""What the clients of a campaign are and share."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from bench.faults.history import HistoryWriter

REQUEST_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """How many clients there are, and where their accounts are created.

    `mongo_url` leads to MongoDB past all faults, `secret` signs the tokens of all apps, and
    `token_s` is how long the tokens last.
    """

    seed: int
    mongo_url: str
    secret: str
    users: int = 60
    slots: int = 24
    subscribers: int = 4
    mean_think_s: float = 0.12
    token_s: float = 86_400.0
    converge_s: float = 120.0
    ready: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, eq=False)
class User:
    """A user with a session; the id is in hex. `bookings` are the latest of this user."""

    name: str
    index: int
    id: str
    token: str
    rng: random.Random
    key_count: int = 0
    bookings: deque[str] = field(default_factory=lambda: deque(maxlen=6))

    def next_key(self) -> str:
        """Return an idempotency key that this user never sent."""
        self.key_count += 1
        return f"faults-{self.index}-{self.key_count}"


@dataclass(slots=True, eq=False)
class Clients:
    """Everything that the clients share. `tickets` has the last status of each ticket.

    Each app has a probe with its own users and slots.
    """

    plan: ClientPlan
    apps: Sequence[str]
    history: HistoryWriter
    stop: asyncio.Event
    http: aiohttp.ClientSession
    users: list[User] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    probe_users: list[User] = field(default_factory=list)
    probe_slots: list[list[str]] = field(default_factory=list)
    tickets: dict[str, tuple[User, str]] = field(default_factory=dict)

    def rng(self, name: str) -> random.Random:
        """Return a random generator that depends on the seed and this name only."""
        return random.Random(f"{self.plan.seed}:clients:{name}")

    async def sleep(self, seconds: float) -> bool:
        """Sleep at most until the end, and return whether the campaign continues."""
        if self.stop.is_set():
            return False
        try:
            async with asyncio.timeout(seconds):
                await self.stop.wait()
        except TimeoutError:
            return True
        return False
