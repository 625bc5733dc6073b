"""What the clients of a campaign are and share."""

import asyncio
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import aiohttp

from bench.faults.history import HistoryWriter
from bench.soak.clients.client_user import ClientUser, sleep_until_set

REQUEST_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """How many clients there are, and where their accounts are created.

    `mongo_url` leads to MongoDB past all faults, `secret` signs the tokens of all apps, and
    `token_s` is how long the tokens last. `ready`, `fault_begins` and `watchers_leave` are set at
    moments of the campaign; the latter two are never set for long.
    """

    seed: int
    mongo_url: str
    secret: str
    users: int = 60
    signed_in_users: int = 6
    creators: int = 2
    slots: int = 24
    watchers: int = 4
    quiet_users: int = 6
    quiet_slots: int = 12
    mean_think_s: float = 0.12
    token_s: float = 86_400.0
    converge_s: float = 60.0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    fault_begins: asyncio.Event = field(default_factory=asyncio.Event)
    watchers_leave: asyncio.Event = field(default_factory=asyncio.Event)
    fault_count: Iterator[int] = field(default_factory=itertools.count)

    def on_fault(self) -> None:
        """Wake those who wait for a fault. Before every other one, all watchers leave together.

        They return while it lasts, and find a process that watches nothing yet.
        """
        for event in (self.fault_begins, self.watchers_leave)[: 1 + next(self.fault_count) % 2]:
            event.set()
            event.clear()


@dataclass(slots=True, eq=False)
class SignedInUser:
    """A user with the refresh token of the session."""

    user: ClientUser
    refresh_token: str


@dataclass(slots=True, eq=False)
class Clients:
    """Everything that the clients share. `tickets` has the last status of each ticket.

    In all of `limited_slots` together, a user may have one booking.

    Each app has a probe with its own users and slots.
    """

    plan: ClientPlan
    apps: Sequence[str]
    history: HistoryWriter
    stop: asyncio.Event
    http: aiohttp.ClientSession
    users: list[ClientUser] = field(default_factory=list)
    signed_in: list[SignedInUser] = field(default_factory=list)
    creators: list[ClientUser] = field(default_factory=list)
    slots: list[str] = field(default_factory=list)
    limited_slots: list[str] = field(default_factory=list)
    quiet_users: list[ClientUser] = field(default_factory=list)
    quiet_slots: list[str] = field(default_factory=list)
    probe_users: list[ClientUser] = field(default_factory=list)
    probe_slots: list[list[str]] = field(default_factory=list)
    tickets: dict[str, tuple[ClientUser, str]] = field(default_factory=dict)

    def rng(self, name: str) -> random.Random:
        """Return a random generator that depends on the seed and this name only."""
        return random.Random(f"{self.plan.seed}:clients:{name}")

    async def sleep(self, seconds: float) -> bool:
        """Sleep at most until the end, and return whether the campaign continues."""
        return await sleep_until_set(self.stop, seconds)
