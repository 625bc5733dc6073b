"""`make bench-calls`: the Python calls of a request, by the part of the program that they are in.

One process serves 64 connections; each request has the token of another user. The process stops
while 64 requests arrive, and then serves this wave. A profiling function counts the calls of Python
functions, a coroutine at its start and at each resumption. The count of a step is that of its
cheapest wave, which hardly varies with the load of the machine. With it are the commands to MongoDB
and Valkey, and the bytes that both receive and send. `calls.json` has the published counts, which
`tests/bench/test_calls.py` holds; `python -m bench.calls publish` writes it.
"""

import json
import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bson import ObjectId
from pymongo import MongoClient
from pymongo.collection import Collection

import slotlock
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import (
    SLOTLOCK_SHAPE,
    SLOTS_PER_DAY,
    Document,
    SlotRange,
    TargetSlots,
)
from bench.growth.cases import CAMPAIGN_ID, campaign_shape
from bench.machine import machine_summary
from slotlock.api.board.documents import board_documents
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers

CONNECTIONS = 64
COUNTED_WAVES = 8
# Enough for all workloads: a waiting list stays when its slot is freed.
DAYS = 30
SLOTS, CAMPAIGN_SLOTS = SlotRange(0, DAYS * SLOTS_PER_DAY), SlotRange(10_000, 2_000)
# How long the process works on after the last response of a wave, such as to release locks.
SETTLE_S = 0.05
HOT_SLOTS = 20
PARTS_SHOWN = 8
COUNTS_FILE = "BENCH_CALLS_FILE"
PACKAGE = Path(slotlock.__file__).parent
PUBLISHED = Path(__file__).with_name("calls.json")

BOOK = """mutation B($id: ID!, $key: String) {
  bookSlot(input: {slotId: $id, idempotencyKey: $key}) {
    __typename ... on Booked { booking { id } slot { id isBooked bookedBy { id } } }
    ... on Refusal { code } } }"""
PLAIN_BOOK = """mutation B($id: ID!) { bookSlot(input: {slotId: $id}) { __typename
  ... on Booked { slot { id isBooked bookedBy { id } } } ... on Refusal { code } } }"""
DEPENDENTS = "{ me { dependents { id } } }"
BOOK_FOR = """mutation B($id: ID!, $user: ID!) { bookSlot(input: {slotId: $id, userId: $user}) {
  __typename ... on Booked { booking { id madeAs } slot { id isBooked } }
  ... on Refusal { code } } }"""
HOLD = """mutation H($id: ID!) { bookSlot(input: {slotId: $id, hold: true}) { __typename
  ... on Booked { booking { id status heldUntil } } ... on Refusal { code } } }"""
CONFIRM = """mutation C($id: ID!) { confirmBooking(bookingId: $id) { __typename
  ... on BookingConfirmed { booking { id status } } ... on Refusal { code } } }"""
CANCEL = """mutation C($id: ID!) { cancelBooking(bookingId: $id) { __typename
  ... on BookingCancelled { booking { id status } } ... on Refusal { code } } }"""
JOIN = """mutation J($id: ID!) { joinWaitlist(slotId: $id) { __typename
  ... on WaitlistJoined { entry { id since } } ... on Refusal { code } } }"""
READ = "query S($id: ID!) { slot(id: $id) { id isBooked startTime title location } }"
LIST = """query L($from: DateTime!, $before: DateTime!) { slots(
  filter: {startsFrom: $from, startsBefore: $before, onlyWithPlacesLeft: true}, first: 50
) { nodes { id startTime location } } }"""
MINE = """{ myBookings(first: 20) { nodes { id status createdAt slot { id title startTime } } } }"""

# Returns the variables of a request by its number and by the data of the step before it.
Variables = Callable[[int, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """Equal requests of many users, who are others than in the step before by `user_shift`."""

    name: str
    query: str
    variables: Variables
    user_shift: int = 0


# The process remembers the tokens that it has verified.
FIRST_USE = Step("first use of the tokens", "{ __typename }", lambda *_: {})


def workloads(first_day: datetime) -> Iterator[Sequence[Step]]:
    """Yield the steps of each workload, which begins with free slots."""

    def slot(number: int, _: object = None) -> dict[str, Any]:
        return {"id": f"slot_{number % SLOTS.count:024x}"}

    def campaign_slot(number: int, _: object) -> dict[str, Any]:
        return {"id": f"slot_{CAMPAIGN_SLOTS.first + number % CAMPAIGN_SLOTS.count:024x}"}

    def day(number: int, _: object) -> dict[str, Any]:
        start = first_day + timedelta(days=number % DAYS)
        return {"from": start.isoformat(), "before": (start + timedelta(days=1)).isoformat()}

    def booking(_: int, data: Any) -> dict[str, Any]:
        (result,) = data.values()
        return {"id": result["booking"]["id"]}

    def dependent(number: int, data: Any) -> dict[str, Any]:
        child, _ = data["me"]["dependents"]
        return slot(number) | {"user": child["id"]}

    yield [
        Step("spread: book distinct slots", PLAIN_BOOK, slot),
        Step("mine: read one's bookings", MINE, lambda *_: {}),
        Step("waitlist: join that of a full slot", JOIN, slot, user_shift=1),
    ]
    yield [Step("hot: book full slots", PLAIN_BOOK, lambda number, _: slot(number % HOT_SLOTS))]
    yield [Step("one: read a slot", READ, slot)]
    yield [Step("list: 50 open slots of a day", LIST, day)]
    yield [
        Step("key: book with a key", BOOK, lambda number, _: slot(number) | {"key": str(number)})
    ]
    yield [
        Step("family: read one's dependents", DEPENDENTS, lambda *_: {}),
        Step("guardian: book for a dependent", BOOK_FOR, dependent),
    ]
    yield [Step("campaign: book under its limits", PLAIN_BOOK, campaign_slot)]
    yield [
        Step("hold: hold distinct slots", HOLD, slot),
        Step("confirm: confirm a hold", CONFIRM, booking),
        Step("cancel: cancel a booking", CANCEL, booking),
    ]
    campaign = {"campaign": f"campaign_{CAMPAIGN_ID}", "first": 20}
    for name, document in (
        ("board: 20 courses of a campaign", "slotsOfCampaign"),
        ("family list: 20 courses for two children", "slotsOfFamily"),
    ):
        yield [Step(name, _board_document(document), lambda *_: campaign)]


def count_workloads(*, publish: bool) -> None:
    """Print the calls of a request of each workload, and the parts with most of them."""
    print(machine_summary())
    published = published_counts()
    counted = {}
    with (
        running_servers() as servers,
        counting_app(servers.embedded, servers.folder, COUNTED_WAVES) as counting,
    ):
        for steps in workloads(counting.first_day):
            before = _server_totals(servers)
            for name, counts in counting.count(steps):
                after = _server_totals(servers)
                counted[name] = sum(counts.values()) / CONNECTIONS
                _print_counts(name, counts, published.get(name))
                _print_totals({each: after[each] - before[each] for each in after})
                before = _server_totals(servers)
    if publish:
        shown = {name: round(calls) for name, calls in counted.items()}
        PUBLISHED.write_text(json.dumps(shown, indent=2) + "\n")


def published_counts() -> dict[str, int]:
    """Return the published calls of a request by the name of the step."""
    counts: dict[str, int] = json.loads(PUBLISHED.read_bytes())
    return counts


class CountingApp:
    """A process that counts its calls, and its slots."""

    def __init__(
        self,
        app: TargetApp,
        tokens: Sequence[str],
        slots: Sequence[TargetSlots],
        first_day: datetime,
        counts_file: Path,
        counted_waves: int,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._slots = slots
        self.first_day = first_day
        self._counts_file = counts_file
        self._counted_waves = counted_waves
        self._next_number = 0

    def count(self, steps: Sequence[Step]) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield the name of each step and the calls of its cheapest wave by `file:function`."""
        for slots in self._slots:
            slots.free_all()
        data: dict[int, Any] = {}
        address = "127.0.0.1", int(self._app.url.rpartition(":")[2])
        for step in steps:
            with ExitStack() as stack:
                connections = [
                    stack.enter_context(socket.create_connection(address))
                    for _ in range(CONNECTIONS)
                ]
                yield step.name, self._count_step(step, connections, data)
        # The process remembers for a second which slots are full.
        self._next_number += CONNECTIONS * (1 + self._counted_waves)

    def _count_step(
        self, step: Step, connections: Sequence[socket.socket], data: dict[int, Any]
    ) -> dict[str, int]:
        """Send the requests of a step, and put the data of each response under its number."""
        waves = []
        for wave in range(1 + self._counted_waves):
            first, is_counted = self._next_number + wave * CONNECTIONS, wave > 0
            if is_counted:
                self._signal(signal.SIGUSR1)
                self._read_file()  # the process counts from now on
            self._signal(signal.SIGSTOP)
            for number, connection in enumerate(connections, first):
                token = self._tokens[(number + step.user_shift) % len(self._tokens)]
                variables = step.variables(number, data.get(number))
                connection.sendall(_request(step.query, variables, token))
            self._signal(signal.SIGCONT)
            for number, connection in enumerate(connections, first):
                data[number] = _read_data(connection)
            if is_counted:
                time.sleep(SETTLE_S)
                waves.append(self._read_counts())
        return min(waves, key=lambda counts: sum(counts.values()))

    def _signal(self, number: signal.Signals) -> None:
        self._app.process.send_signal(number)

    def _read_counts(self) -> dict[str, int]:
        self._signal(signal.SIGUSR2)
        return self._read_file()

    def _read_file(self) -> dict[str, int]:
        """Return the counts once the process has written them, none when it begins to count."""
        while not self._counts_file.exists():
            time.sleep(0.01)
        counts: dict[str, int] = json.loads(self._counts_file.read_bytes())
        self._counts_file.unlink()
        return counts


@contextmanager
def counting_app(
    servers: EmbeddedServers, folder: Path, counted_waves: int
) -> Iterator[CountingApp]:
    """Seed slots, and run a process that counts its calls from SIGUSR1 to SIGUSR2."""
    requests = CONNECTIONS * (1 + counted_waves)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first_day, counts_file = midnight + timedelta(days=1), folder / "calls.json"
    options = slotlock_target.RATE_LIMITS_OFF | {COUNTS_FILE: str(counts_file)}
    command = slotlock_target.command(servers, 1, options)
    command = replace(command, arguments=(sys.executable, "-m", "bench.calls", "serve"))
    with MongoClient[Document](servers.mongo_url) as client:
        seeded = []
        for shape, numbers in ((SLOTLOCK_SHAPE, SLOTS), (campaign_shape(), CAMPAIGN_SLOTS)):
            target = TargetSlots(client, slotlock_target.DATABASE_NAME, shape, first_day)
            target.seed(numbers)
            seeded.append(target)
        tokens = slotlock_target.tokens(servers, requests)
        _add_children(client[slotlock_target.DATABASE_NAME]["users"])
        with running("calls", command, folder) as app:
            counting = CountingApp(app, tokens, seeded, first_day, counts_file, counted_waves)
            for _ in counting.count([FIRST_USE]):
                pass
            yield counting


def _board_document(name: str) -> str:
    [text] = (text for id_, text in board_documents().items() if id_.split("/")[1] == name)
    return text


def _add_children(users: Collection[Document]) -> None:
    """Give each user two children."""
    guardians = [each["_id"] for each in users.find({}, {"_id": 1})]
    users.insert_many(
        {"_id": ObjectId(), "name": name, "email": f"{name} {id_}", "role": "member",
         "createdAt": datetime.now(UTC), "sortName": f"{name}\t{id_}", "guardians": [id_]}
        for id_ in guardians
        for name in ("Mia", "Ben")
    )  # fmt: skip


def _request(query: str, variables: dict[str, Any], token: str) -> bytes:
    body = json.dumps({"query": query, "variables": variables}).encode()
    return (
        b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Accept: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
        % (token.encode(), len(body), body)
    )


def _read_data(connection: socket.socket) -> Any:
    with connection.makefile("rb") as reader:
        head = b"".join(iter(reader.readline, b"\r\n"))
        body = reader.read(int(head.lower().partition(b"length: ")[2].split()[0]))
    if b" 200 " not in head[:20] or b'"errors"' in body:
        raise SystemExit(f"unexpected response: {(head + body).decode()}")
    return json.loads(body)["data"]


def _server_totals(servers: BenchmarkServers) -> dict[str, int]:
    """Return what MongoDB and Valkey have counted so far: commands, bytes received and sent."""
    status: dict[str, Any] = servers.client.admin.command("serverStatus")
    valkey: dict[str, Any] = servers.redis.info()
    network = status["network"]
    return {
        "MongoDB commands": network["numRequests"],
        "MongoDB KB": (network["bytesIn"] + network["bytesOut"]) // 1000,
        "Valkey commands": valkey["total_commands_processed"],
        "Valkey KB": (valkey["total_net_input_bytes"] + valkey["total_net_output_bytes"]) // 1000,
    }


def _print_counts(name: str, counts: Mapping[str, int], published: int | None) -> None:
    parts: Counter[str] = Counter()
    for function, calls in counts.items():
        parts[_part(function.rpartition(":")[0])] += calls
    calls_each = {part: calls / CONNECTIONS for part, calls in parts.most_common()}
    shown = ", ".join(f"{part} {calls_each[part]:.0f}" for part in list(calls_each)[:PARTS_SHOWN])
    total = sum(calls_each.values())
    print(f"{name}: {total:.0f}, published {published} ({shown})", flush=True)


def _print_totals(totals: Mapping[str, int]) -> None:
    each = ", ".join(
        f"{name} {total / (CONNECTIONS * (1 + COUNTED_WAVES)):.2f}"
        for name, total in totals.items()
    )
    print(f"  {each}", flush=True)


def _serve() -> int:
    """Run `slotlock serve`, counting calls from SIGUSR1 until SIGUSR2, which writes the counts."""
    counts: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    def write(functions: Counter[str]) -> None:
        file = Path(os.environ[COUNTS_FILE])
        file.with_suffix(".new").write_text(json.dumps(functions))
        file.with_suffix(".new").rename(file)

    def start(*_: object) -> None:
        write(Counter())
        sys.setprofile(count)

    def stop(*_: object) -> None:
        sys.setprofile(None)
        functions: Counter[str] = Counter()
        for code, calls in counts.items():
            functions[f"{code.co_filename}:{code.co_qualname}"] += calls
        counts.clear()
        write(functions)

    signal.signal(signal.SIGUSR1, start)
    signal.signal(signal.SIGUSR2, stop)
    return main(["serve"])


def _part(file_name: str) -> str:
    """Return the folder of a module of slotlock, or the package of another one."""
    path = Path(file_name)
    if path.is_relative_to(PACKAGE):
        return "/".join(path.relative_to(PACKAGE).parts[:-1][:2])
    package = re.search(r".*/(?:site-packages|src)/(\w+)", file_name)
    return package[1] if package else "Python"


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        sys.exit(_serve())
    count_workloads(publish=sys.argv[1:] == ["publish"])
