"""The admission queue: tickets a second, with two server processes and two queue workers."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from bench.app_process import PROJECT, free_port, launch
from bench.comparison.correctness import response_problems
from bench.comparison.cpu import CpuSample, CpuTime
from bench.comparison.load import CONNECTIONS, Load, Requests, drive
from bench.comparison.plan import Plan
from bench.comparison.rounds import settled_tally
from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import (
    TargetApp,
    TargetAppError,
    process_cpu_seconds,
    running,
    stop,
)
from bench.comparison.targets.slots import SlotRange
from bench.comparison.targets.targets import Databases
from slotlock.infrastructure.redis.keys import PARTITIONS, queue_keys

WORKERS = 2
USERS = 1000
# Half of the users get a place.
PLACES = 500
SLOTS_PER_ROUND = 40
FIRST_SLOT = 20_000_000
POLL_INTERVAL_S = 0.01
DRAIN_TIMEOUT_S = 60.0
START_TIMEOUT_S = 60.0
READY_LINE = b"serving the admission queue"
SETTINGS = {**slotlock_target.RATE_LIMITS_OFF, "SLOTLOCK_QUEUE_WORKER": "off"}


@dataclass(frozen=True, slots=True)
class QueueRun:
    """Requests for tickets, and the seconds from the first until the queue was empty."""

    round: int
    load: Load
    seconds: float
    booked: int
    cpu: CpuTime
    worker_cpu_s: float
    problems: list[str]

    @property
    def rate(self) -> float:
        """Return the final answers a second: decided tickets and refusals without a ticket."""
        return self.load.requests / self.seconds

    @property
    def ticket_rate(self) -> float:
        """Return the decided tickets a second."""
        return self.load.outcomes["ticket"] / self.seconds


def slots_of_round(number: int) -> SlotRange:
    """Return the slots of a round; a ticket of an earlier round must not answer a later one."""
    return SlotRange(FIRST_SLOT + number * SLOTS_PER_ROUND, SLOTS_PER_ROUND, PLACES)


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """The running servers and workers of a checkout; `workers` are process ids."""

    plan: Plan
    servers: BenchmarkServers
    databases: Databases
    app: TargetApp
    workers: Sequence[int]
    tokens: Path

    def run(self, number: int) -> QueueRun:
        """Return the run of one round."""
        slots = slots_of_round(number)
        target_slots = self.databases.slotlock_slots
        target_slots.seed(slots)
        booked_before = target_slots.tally().booked
        cpu_before = CpuSample.take(self.app, self.servers.pids)
        worker_cpu_before = _cpu_seconds(self.workers)
        requests = Requests(
            "slotlock", "queue", slots.count, self.databases.first_day, self.tokens, slots.first
        )
        started_at = time.perf_counter()
        load = drive(self.app.url, requests, self.plan.seconds)
        drained = wait_until_drained(self.servers.redis)
        seconds = time.perf_counter() - started_at
        cpu = CpuTime.between(cpu_before, CpuSample.take(self.app, self.servers.pids))
        worker_cpu_s = _cpu_seconds(self.workers) - worker_cpu_before
        tally = settled_tally(target_slots, load)
        booked = tally.booked - booked_before
        problems = find_problems(load, booked, tally.wrong, drained=drained)
        return QueueRun(number, load, seconds, booked, cpu, worker_cpu_s, problems)


@contextmanager
def running_queue(
    plan: Plan,
    servers: BenchmarkServers,
    databases: Databases,
    project: Path = PROJECT,
) -> Iterator[QueueTarget]:
    """Run the servers and workers of a checkout, and warm them up with a round of number 0."""
    command = slotlock_target.command(servers.embedded, WORKERS, SETTINGS, project=project)
    databases.slotlock_slots.free_all()
    servers.redis.flushall()
    tokens = servers.folder / "queue.tokens"
    new_tokens = slotlock_target.tokens(servers.embedded, USERS)
    tokens.write_text("".join(f"{token}\n" for token in new_tokens))
    with (
        running("queue", command, servers.folder) as app,
        running_workers(servers, project) as workers,
    ):
        target = QueueTarget(plan, servers, databases, app, workers, tokens)
        target.run(0)
        yield target


def run_queues(plan: Plan, servers: BenchmarkServers, databases: Databases) -> Iterator[QueueRun]:
    """Yield a run of each round."""
    with running_queue(plan, servers, databases) as target:
        for number in range(1, 1 + plan.rounds):
            yield target.run(number)


def find_problems(load: Load, booked: int, wrong: int, *, drained: bool) -> list[str]:
    """Return the problems of a run; none if exactly the places were given.

    The server may have received the requests that were open when wrk stopped.
    """
    lowest, highest = (
        expected_bookings(load.requests),
        expected_bookings(load.requests + CONNECTIONS),
    )
    found = response_problems(load, frozenset({"200"}))
    if not drained:
        found.append(f"the queue is not empty after {DRAIN_TIMEOUT_S:.0f} s")
    if not lowest <= booked <= highest:
        found.append(f"{booked} bookings in MongoDB, {lowest} to {highest} expected")
    if load.requests > USERS * SLOTS_PER_ROUND:
        found.append(f"{load.requests} requests, more than users and slots")
    if wrong:
        found.append(f"{wrong} slots whose bookings and places disagree")
    return found


def expected_bookings(requests: int) -> int:
    """Return the bookings after so many requests: all users request one slot, then the next."""
    full, partial = divmod(requests, USERS)
    return full * PLACES + min(partial, PLACES)


def wait_until_drained(redis: "Redis") -> bool:
    """Wait until no request is in the queue; return False if that takes too long."""
    streams = [queue_keys(partition).requests for partition in range(PARTITIONS)]
    deadline = time.monotonic() + DRAIN_TIMEOUT_S
    while any(redis.xlen(stream) for stream in streams):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


@contextmanager
def running_workers(servers: BenchmarkServers, project: Path = PROJECT) -> Iterator[list[int]]:
    """Run the queue workers of a checkout and yield their process ids; raises TargetAppError."""
    settings = {**slotlock_target.settings(servers.embedded), **SETTINGS}
    with ExitStack() as stack:
        workers = []
        for number in range(WORKERS):
            log_file = servers.folder / f"worker-{number}.log"
            log_file.unlink(missing_ok=True)
            worker = launch("worker", settings, free_port(), log_file, project=project)
            stack.callback(stop, worker)
            workers.append((worker, log_file))
        deadline = time.monotonic() + START_TIMEOUT_S
        for worker, log_file in workers:
            while READY_LINE not in log_file.read_bytes():
                if worker.poll() is not None or time.monotonic() > deadline:
                    raise TargetAppError(f"a queue worker does not start: {log_file.read_text()}")
                time.sleep(0.05)
        yield [worker.pid for worker, _ in workers]


def _cpu_seconds(pids: Sequence[int]) -> float:
    return sum(map(process_cpu_seconds, pids))
