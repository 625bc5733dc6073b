"""What the clients of a campaign are and share."""

import asyncio
import itertools
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.faults.history import HistoryWriter, Json, Operation
from slotlock.simulation.client.http import GraphQLClient

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
    families: int = 4
    teams: int = 4
    team_size: int = 4
    organizers: int = 2
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


@dataclass(frozen=True, slots=True)
class SentCommand:
    """A request that may be sent again, because it has a key."""

    user: "ClientUser"
    name: str
    document: str
    variables: Json


@dataclass(slots=True, eq=False, kw_only=True)
class ClientUser:
    """A user with a session and a random generator of their own; the id is in hex.

    `slots` are those that the user wants, the most popular first. Apart from themselves, they book
    for the `others`. `known_bookings` are the latest that they can change. A guardian changes those
    of their children, too; `lost_child` is one whom they act for from time to time.
    """

    name: str
    id: str
    email: str
    token: str
    refresh_token: str
    rng: random.Random
    slots: Sequence[str] = ()
    others: "list[ClientUser]" = field(default_factory=list)
    is_organizer: bool = False
    is_guardian: bool = False
    lost_child: "ClientUser | None" = None
    key_count: int = 0
    known_bookings: deque[str] = field(default_factory=lambda: deque(maxlen=8))

    def next_key(self) -> str:
        """Return an idempotency key that this user never sent."""
        self.key_count += 1
        return f"{self.name.replace(' ', '-')}-{self.key_count}"

    def maybe_key(self) -> str | None:
        """Return such a key, or sometimes none."""
        return self.next_key() if self.rng.random() < 0.6 else None


@dataclass(slots=True, eq=False)
class Team:
    """A team as its members know it; the first one leads it."""

    id: str
    members: list[ClientUser]


@dataclass(slots=True, eq=False)
class Clients:
    """Everything that the clients share. `tickets` has the last status of each ticket.

    In all of `limited_slots` together, a user may have one booking. The slots of teams have limits
    of other kinds, and organizers change them. Each app has a probe with its own users and slots.
    `accepted` and `open` are requests with a key that have done something, or have no response.
    """

    plan: ClientPlan
    apps: Sequence[str]
    history: HistoryWriter
    stop: asyncio.Event
    client_of: Mapping[str, GraphQLClient]
    users: list[ClientUser] = field(default_factory=list)
    signed_in: list[ClientUser] = field(default_factory=list)
    creators: list[ClientUser] = field(default_factory=list)
    organizers: list[ClientUser] = field(default_factory=list)
    teams: list[Team] = field(default_factory=list)
    guardians: list[ClientUser] = field(default_factory=list)
    campaign: str = ""
    slots: list[str] = field(default_factory=list)
    limited_slots: list[str] = field(default_factory=list)
    team_slots: list[str] = field(default_factory=list)
    slot_inputs: dict[str, Json] = field(default_factory=dict)
    quiet_users: list[ClientUser] = field(default_factory=list)
    quiet_slots: list[str] = field(default_factory=list)
    probe_users: list[ClientUser] = field(default_factory=list)
    probe_slots: list[list[str]] = field(default_factory=list)
    tickets: dict[str, tuple[ClientUser, str]] = field(default_factory=dict)
    accepted: list[SentCommand] = field(default_factory=list)
    open: list[SentCommand] = field(default_factory=list)

    def rng(self, name: str) -> random.Random:
        """Return a random generator that depends on the seed and this name only."""
        return random.Random(f"{self.plan.seed}:clients:{name}")

    async def sleep(self, seconds: float) -> bool:
        """Sleep at most until the end, and return whether the campaign continues."""
        return await sleep_until_set(self.stop, seconds)


async def sleep_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Sleep for some time, but at most until the event; return whether it is still not set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return True
    return False


def type_of(sent: Operation) -> str:
    """Return the type of a response; empty without one."""
    return str(sent.outcome["__typename"]) if sent.outcome else ""
