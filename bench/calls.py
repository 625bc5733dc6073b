"""`make bench-calls`: the Python calls of a request, by the part of the program that they are in.

One process serves 64 connections; each request has the token of another user. A profiling function
counts the calls of Python functions, a coroutine at its start and at each resumption. The counts
vary by some per cent with the sizes of the batches, and hardly with the load of the machine.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import CodeType, FrameType

import slotlock
from bench.comparison.servers import running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running
from bench.comparison.targets.slots import SLOTLOCK_SHAPE, SlotRange, TargetSlots
from bench.machine import machine_summary
from slotlock.cli.main import main

CONNECTIONS, USERS = 64, 500
SLOTS = SlotRange(0, 8_000)
WARM_UP, COUNTED = range(1_000), range(1_000, 6_000)
HOT_SLOTS = 20
PARTS_SHOWN = 8
COUNTS_FILE = "BENCH_CALLS_FILE"
PACKAGE = Path(slotlock.__file__).parent

BOOK = """mutation B($id: ID!) { bookSlot(input: {slotId: $id}) { __typename
  ... on Booked { slot { id isBooked bookedBy { id } } } ... on Refusal { code } } }"""
READ = "query S($id: ID!) { slot(id: $id) { id isBooked startTime title location } }"
LIST = """query L($from: DateTime!, $before: DateTime!) { slots(
  filter: {startsFrom: $from, startsBefore: $before, onlyWithPlacesLeft: true}, first: 50
) { nodes { id startTime location } } }"""

# Returns the variables of a request by its number.
Variables = Callable[[int], dict[str, str]]


def count_workloads() -> None:
    """Print the calls of a request of each workload, and the parts with most of them."""
    print(machine_summary())
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first_day = midnight + timedelta(days=1)
    with running_servers() as servers:
        database_name = slotlock_target.DATABASE_NAME
        slots = TargetSlots(servers.client, database_name, SLOTLOCK_SHAPE, first_day)
        slots.seed(SLOTS)
        tokens = slotlock_target.tokens(servers.embedded, USERS)
        counts_file = servers.folder / "calls.json"
        options = slotlock_target.RATE_LIMITS_OFF | {COUNTS_FILE: str(counts_file)}
        command = slotlock_target.command(servers.embedded, 1, options)
        command = replace(command, arguments=(sys.executable, "-m", "bench.calls", "serve"))
        with running("calls", command, servers.folder) as app:
            for name, query, variables in _workloads(first_day):
                slots.free_all()
                _send(app, query, variables, tokens, WARM_UP)
                app.process.send_signal(signal.SIGUSR1)
                _send(app, query, variables, tokens, COUNTED)
                app.process.send_signal(signal.SIGUSR2)
                _print_counts(name, _read(counts_file))


def _workloads(first_day: datetime) -> Iterator[tuple[str, str, Variables]]:
    def slot(number: int) -> dict[str, str]:
        return {"id": f"slot_{number % SLOTS.count:024x}"}

    def day(number: int) -> dict[str, str]:
        start = first_day + timedelta(days=number % (SLOTS.count // 200))
        return {"from": start.isoformat(), "before": (start + timedelta(days=1)).isoformat()}

    yield "spread: book distinct slots", BOOK, slot
    yield "hot: book full slots", BOOK, lambda number: slot(number % HOT_SLOTS)
    yield "one: read a slot", READ, slot
    yield "list: 50 open slots of a day", LIST, day


def _send(
    app: TargetApp, query: str, variables: Variables, tokens: Sequence[str], numbers: range
) -> None:
    requests = iter(
        [_request(query, variables(number), tokens[number % USERS]) for number in numbers]
    )
    asyncio.run(_send_on_connections(int(app.url.rpartition(":")[2]), requests))


def _request(query: str, variables: dict[str, str], token: str) -> bytes:
    body = json.dumps({"query": query, "variables": variables}).encode()
    return (
        b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Accept: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
        % (token.encode(), len(body), body)
    )


async def _send_on_connections(port: int, requests: Iterator[bytes]) -> None:
    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in requests:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(head.lower().partition(b"length: ")[2].split()[0]))
            if b" 200 " not in head[:20] or b'"errors"' in body:
                raise SystemExit(f"unexpected response: {(head + body).decode()}")
        writer.close()

    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))


def _read(file: Path) -> dict[str, int]:
    while not file.exists():
        time.sleep(0.05)
    counts: dict[str, int] = json.loads(file.read_bytes())
    file.unlink()
    return counts


def _print_counts(name: str, counts: dict[str, int]) -> None:
    calls = {part: count / len(COUNTED) for part, count in counts.items()}
    largest = sorted(calls, key=calls.__getitem__, reverse=True)[:PARTS_SHOWN]
    parts = ", ".join(f"{part} {calls[part]:.0f}" for part in largest)
    print(f"{name}: {sum(calls.values()):.0f} ({parts})", flush=True)


def _serve() -> int:
    """Run `slotlock serve`, counting calls from SIGUSR1 until SIGUSR2, which writes the counts."""
    counts: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    def stop(*_: object) -> None:
        sys.setprofile(None)
        parts: Counter[str] = Counter()
        for code, calls in counts.items():
            parts[_part(code.co_filename)] += calls
        counts.clear()
        file = Path(os.environ[COUNTS_FILE])
        file.with_suffix(".new").write_text(json.dumps(parts))
        file.with_suffix(".new").rename(file)

    signal.signal(signal.SIGUSR1, lambda *_: sys.setprofile(count))
    signal.signal(signal.SIGUSR2, stop)
    return main(["serve"])


def _part(file_name: str) -> str:
    """Return the folder of a module of slotlock, or the package of another one."""
    path = Path(file_name)
    if path.is_relative_to(PACKAGE):
        return "/".join(path.relative_to(PACKAGE).parts[:-1][:2])
    _, is_installed, module = file_name.rpartition("site-packages/")
    return module.partition("/")[0] if is_installed else "Python"


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        sys.exit(_serve())
    count_workloads()
