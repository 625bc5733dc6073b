"""A rush through the admission queue: `python -m bench.rush` (make bench-rush).

The benchmark runs two server processes and two queue worker processes on embedded servers.
`slotlock simulate` lets 2,500 users request each of 20 slots with 25 places at the same instant.
The output has the simulation's counts and checks, and the memory of every process per round.
The memory is constant if the later rounds take no more than the first.
With `--late` the queue workers start when the queue holds every request, which is its maximum
length.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bench.comparison.targets.apps import Command, TargetApp, running
from bench.comparison.targets.slotlock_target import PROJECT, SECRET
from bench.machine import machine_summary
from slotlock.devserver.embedded import embedded_servers

PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
SAMPLE_INTERVAL_S = 0.25
# A queue that has not grown for so long holds every request.
SETTLED_S = 3.0
WORKERS = 2
# The options that pass through to the simulation.
SIZE_DEFAULTS = {"users": 2500, "slots": 20, "places": 25, "attempts": 20}
ADMIN = {
    "SLOTLOCK_ADMIN_EMAIL": "admin@slotlock.test",
    "SLOTLOCK_ADMIN_PASSWORD": "the password of the rush",
}


@dataclass(slots=True)
class Memory:
    """The memory of processes in MiB by name: the highest and the last sample."""

    peak: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def sample(self, processes: dict[str, int]) -> None:
        """Record the present memory of each process."""
        for name, pid in processes.items():
            with suppress(OSError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                self.last[name] = pages * PAGE_MIB
                self.peak[name] = max(self.peak.get(name, 0.0), self.last[name])


@contextmanager
def watch_memory(processes: Callable[[], dict[str, int]]) -> Iterator[Memory]:
    """Sample the memory of the processes until the context is left."""
    memory, done = Memory(), threading.Event()

    def sample_until_done() -> None:
        while not done.wait(SAMPLE_INTERVAL_S):
            memory.sample(processes())

    thread = threading.Thread(target=sample_until_done)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join()


class Workers:
    """The processes of `slotlock worker`."""

    def __init__(self, environment: dict[str, str], log_dir: Path, stack: ExitStack) -> None:
        self._environment = environment
        self._log_dir = log_dir
        self._stack = stack
        self.pids: dict[str, int] = {}

    def start(self) -> None:
        """Start the workers that do not run yet."""
        for number in range(len(self.pids), WORKERS):
            log = self._stack.enter_context((self._log_dir / f"worker-{number}.log").open("wb"))
            worker = subprocess.Popen(
                [sys.executable, "-m", "slotlock", "worker"],
                env={**os.environ, **self._environment},
                stdout=log,
                stderr=log,
            )
            self._stack.callback(worker.wait)
            self._stack.callback(worker.terminate)
            self.pids[f"worker {number}"] = worker.pid


def queue_length(app: TargetApp) -> float:
    """Return the number of requests in the queue, from the metrics of the app."""
    text = httpx.get(app.url + "/metrics", trust_env=False, timeout=30).text
    families = text_string_to_metric_families(text)
    queued = (family for family in families if family.name == "slotlock_queue_length")
    return sum(sample.value for family in queued for sample in family.samples)


def start_simulation(
    app: TargetApp, args: argparse.Namespace, *extra_options: str
) -> "subprocess.Popen[bytes]":
    """Start the simulation, which prints its own output."""
    options = [f"--{name}={getattr(args, name)}" for name in SIZE_DEFAULTS]
    command = [sys.executable, "-m", "slotlock", "simulate", "--mode=queue", f"--url={app.url}"]
    return subprocess.Popen([*command, *options, *extra_options], env={**os.environ, **ADMIN})


def run_round(
    app: TargetApp, workers: Workers, args: argparse.Namespace, extra_options: Sequence[str]
) -> int:
    """Run one rush and return the exit code of the simulation."""
    simulation = start_simulation(app, args, *extra_options)
    if not args.late:
        workers.start()
    previous_length = 0.0
    while args.late and not workers.pids and simulation.poll() is None:
        time.sleep(SETTLED_S)
        if (length := queue_length(app)) == previous_length > 0:
            print(f"{length:,.0f} requests in the queue; starting the workers", flush=True)
            workers.start()
        previous_length = length
    return simulation.wait()


def main() -> int:
    """Run all rounds; return 1 if a round broke a promise."""
    parser = argparse.ArgumentParser(prog="bench.rush", description=__doc__)
    for name, default in SIZE_DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--late", action="store_true", help="start the workers when the queue is complete"
    )
    parser.add_argument("--plot", help="plot the first round as .svg or .png")
    args = parser.parse_args()
    print(machine_summary(), flush=True)
    failed = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slotlock-rush-")))
        servers = stack.enter_context(embedded_servers(folder / "servers"))
        environment = {
            **ADMIN,
            "SLOTLOCK_MONGO_URL": servers.mongo_url,
            "SLOTLOCK_REDIS_URL": servers.redis_url,
            "SLOTLOCK_SECRET_KEY": SECRET,
            "SLOTLOCK_RATE_LIMITS": "off",
            "SLOTLOCK_QUEUE_WORKER": "off",
        }
        arguments = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
        command = Command(arguments, environment, PROJECT, "/readyz")
        app = stack.enter_context(running("app", command, folder))
        workers = Workers(environment, folder, stack)
        for number in range(args.rounds):
            print(f"\nround {number + 1} of {args.rounds}", flush=True)
            options = [f"--plot={args.plot}"] if args.plot and number == 0 else []
            with watch_memory(lambda: _processes(app) | workers.pids) as memory:
                failed |= run_round(app, workers, args, options) != 0
            _print_memory(memory)
    return int(failed)


def _processes(app: TargetApp) -> dict[str, int]:
    # The parent and Python's resource tracker serve no requests.
    busy = [pid for pid, spent in app.cpu_seconds().items() if pid != app.process.pid and spent > 1]
    return {f"app {number}": pid for number, pid in enumerate(sorted(busy))}


def _print_memory(memory: Memory) -> None:
    print("memory, MiB (maximum of the round, end of the round):")
    for name in sorted(memory.peak):
        print(f"  {name:10} {memory.peak[name]:7.0f} {memory.last[name]:7.0f}")


if __name__ == "__main__":
    sys.exit(main())
