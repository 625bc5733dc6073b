"""Fan-out: a change of one slot reaches 1,000 or 5,000 subscribers of one process.

P2 has no publish/subscribe between processes, and its change writes nothing. slotlock's change is
a booking.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Self

from bench.comparison.plan import Plan
from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets import node_peers, slotlock_target
from bench.comparison.targets.apps import Command, TargetApp, running
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import P2, SLOTLOCK, Databases

CHANGES_PER_ROUND = 10
WARM_UP_CHANGES = 3
# Between two changes, so that each is a burst of its own.
PAUSE_S = 0.05
PLACES = 1000
FIRST_SLOT = 30_000_000
SETTINGS = {
    **slotlock_target.RATE_LIMITS_OFF,
    "SLOTLOCK_MAX_SOCKETS": "20000",
    "SLOTLOCK_STREAMS_PER_ADDRESS": "19999",
}


class FanOutError(Exception):
    """The subscriptions do not open, or a change does not reach all of them."""


@dataclass(frozen=True, slots=True)
class Change:
    """The HTTP request of a change, and the value after the marker in the message about it."""

    body: str
    token: str
    value: int


@dataclass(frozen=True, slots=True)
class Publisher:
    """The subscription of a target, and its changes by number."""

    subscription: str
    marker: str
    has_initial_state: bool
    change: Callable[[int], Change]


@dataclass(frozen=True, slots=True)
class FanOutRun:
    """The changes of a round: medians in milliseconds, and the cost of a delivery.

    `memory_kib` is the memory of the app for each subscriber.
    """

    round: int
    target: str
    subscribers: int
    first_to_last_ms: float
    to_last_ms: float
    app_cpu_us: float
    memory_kib: float


def run_fan_out(
    plan: Plan, servers: BenchmarkServers, databases: Databases, peers_home: Path
) -> Iterator[FanOutRun]:
    """Yield a run of each round, number of subscribers and target; raises FanOutError."""
    commands = {
        P2: node_peers.p2_command(peers_home, servers.embedded, 1, {}),
        SLOTLOCK: slotlock_target.command(servers.embedded, 1, SETTINGS),
    }
    databases.slotlock_slots.seed(SlotRange(FIRST_SLOT, len(plan.subscribers), PLACES))
    tokens = slotlock_target.tokens(servers.embedded, change_count(plan))
    for index, count in enumerate(plan.subscribers):
        publishers = {P2: p2_publisher(), SLOTLOCK: slotlock_publisher(FIRST_SLOT + index, tokens)}
        yield from run_audiences(plan, servers, peers_home, commands, publishers, count)


def change_count(plan: Plan) -> int:
    """Return the number of changes that each target makes for one number of subscribers."""
    return WARM_UP_CHANGES + plan.rounds * CHANGES_PER_ROUND


def run_audiences(
    plan: Plan,
    servers: BenchmarkServers,
    peers_home: Path,
    commands: Mapping[str, Command],
    publishers: Mapping[str, Publisher],
    count: int,
) -> Iterator[FanOutRun]:
    """Yield a run of each round and target, for one number of subscribers; raises FanOutError."""
    with ExitStack() as stack:
        audiences = []
        for name, publisher in publishers.items():
            app = stack.enter_context(running(name, commands[name], servers.folder))
            subscribers = stack.enter_context(opened_subscribers(peers_home))
            audiences.append(Audience.open(name, app, publisher, subscribers, count))
        for audience in audiences:
            audience.warm_up()
        for number in range(plan.rounds):
            for audience in (audiences, audiences[::-1])[number % 2]:
                yield audience.measure(number)


def p2_publisher() -> Publisher:
    """Return the subscription and the changes of P2."""
    slot_id = f"{FIRST_SLOT:024x}"
    mutation = "mutation($id: ID!, $seq: Int!) { bump(slotId: $id, seq: $seq) }"

    def change(number: int) -> Change:
        variables = {"id": slot_id, "seq": number + 1}
        return Change(json.dumps({"query": mutation, "variables": variables}), "", number + 1)

    subscription = f'subscription {{ availability(slotId: "{slot_id}") {{ slotId isBooked seq }} }}'
    return Publisher(subscription, '"seq":', has_initial_state=False, change=change)


def slotlock_publisher(slot_number: int, tokens: Sequence[str]) -> Publisher:
    """Return the subscription of slotlock and bookings by different users."""
    slot_id = f"slot_{slot_number:024x}"
    mutation = "mutation($id: ID!) { bookSlot(input: {slotId: $id, waitMs: 5000}) { __typename } }"
    body = json.dumps({"query": mutation, "variables": {"id": slot_id}})

    def change(number: int) -> Change:
        return Change(body, tokens[number], PLACES - number - 1)

    subscription = (
        f'subscription {{ slotAvailability(slotIds: ["{slot_id}"]) '
        "{ slotId isBooked remaining version } }"
    )
    return Publisher(subscription, '"remaining":', has_initial_state=True, change=change)


class Subscribers:
    """A Node process with the subscriptions."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the response; raises FanOutError."""
        if self._process.stdin is None or self._process.stdout is None:
            raise FanOutError("the subscribers have no pipes")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        response: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in response:
            raise FanOutError(str(response["error"]))
        return response


@contextmanager
def opened_subscribers(peers_home: Path) -> Iterator[Subscribers]:
    """Run the process of the subscribers."""
    with subprocess.Popen(
        ("node", "subscribers.js"),
        cwd=peers_home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Subscribers(process)
        finally:
            process.terminate()


@dataclass(slots=True)
class Audience:
    """The subscribers of a target, and the number of its next change."""

    target: str
    app: TargetApp
    publisher: Publisher
    subscribers: Subscribers
    count: int
    memory_kib: float
    next_change: int = 0

    @classmethod
    def open(
        cls,
        target: str,
        app: TargetApp,
        publisher: Publisher,
        subscribers: Subscribers,
        count: int,
    ) -> Self:
        """Open the subscriptions and measure the memory they take; raises FanOutError."""
        before = app.memory_bytes()
        subscribers.ask(
            {
                "url": app.url.replace("http://", "ws://") + "/graphql",
                "count": count,
                "query": publisher.subscription,
                "marker": publisher.marker,
                "hasInitialState": publisher.has_initial_state,
            }
        )
        memory_kib = (app.memory_bytes() - before) / count / 1024
        return cls(target, app, publisher, subscribers, count, memory_kib)

    def warm_up(self) -> None:
        """Make changes that do not count; raises FanOutError."""
        for _ in range(WARM_UP_CHANGES):
            self._publish()

    def measure(self, number: int) -> FanOutRun:
        """Make the changes of a round; raises FanOutError."""
        cpu_before = sum(self.app.cpu_seconds().values())
        changes = [self._publish() for _ in range(CHANGES_PER_ROUND)]
        cpu_s = sum(self.app.cpu_seconds().values()) - cpu_before
        return FanOutRun(
            round=number + 1,
            target=self.target,
            subscribers=self.count,
            first_to_last_ms=median(each["toLastMs"] - each["toFirstMs"] for each in changes),
            to_last_ms=median(each["toLastMs"] for each in changes),
            app_cpu_us=cpu_s / (CHANGES_PER_ROUND * self.count) * 1e6,
            memory_kib=self.memory_kib,
        )

    def _publish(self) -> dict[str, Any]:
        time.sleep(PAUSE_S)
        change = self.publisher.change(self.next_change)
        self.next_change += 1
        result = self.subscribers.ask(
            {
                "httpUrl": f"{self.app.url}/graphql",
                "token": change.token,
                "body": change.body,
                "value": change.value,
            }
        )
        if result["delivered"] != self.count:
            raise FanOutError(
                f"{self.target}: a change reached {result['delivered']} of {self.count} "
                f"subscribers; the response to it: {result['response'][:300]}"
            )
        return result
