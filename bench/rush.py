"""A rush through the admission queue: `python -m bench.rush` (make bench-rush).

Two processes of the app and two of `slotlock worker` on embedded servers of their own, and
`slotlock simulate` in front of them: 2,500 people ask for each of 20 slots of 25 places in the same
instant. Printed are what the simulation counts and checks, and the memory of every process, round
by round: it is flat when the later rounds take no more than the first. With `--late` the workers
start when everybody is in line, which is the longest that the line can be.
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

from bench.machine import machine_summary
from bench.slotlock_target import PROJECT, SECRET
from bench.target_apps import Command, TargetApp, running
from slotlock.devserver.embedded import embedded_servers

PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / 2**20
SAMPLE_INTERVAL_S = 0.25
# A line that has not grown for so long has everybody.
SETTLED_S = 3.0
WORKERS = 2
ADMIN = {
    "SLOTLOCK_ADMIN_EMAIL": "admin@slotlock.test",
    "SLOTLOCK_ADMIN_PASSWORD": "the password of the rush",
}


@dataclass(slots=True)
class Memory:
    """The memory of processes while it is watched, in MiB, by what they are."""

    peak: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    def sample(self, processes: dict[str, int]) -> None:
        """Take the present memory of each."""
        for name, pid in processes.items():
            with suppress(OSError):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                self.last[name] = pages * PAGE_MIB
                self.peak[name] = max(self.peak.get(name, 0.0), self.last[name])


@contextmanager
def watch_memory(processes: Callable[[], dict[str, int]]) -> Iterator[Memory]:
    """Look at the memory of these processes for as long as this lasts."""
    memory, over = Memory(), threading.Event()

    def sample_until_done() -> None:
        while not over.wait(SAMPLE_INTERVAL_S):
            memory.sample(processes())

    thread = threading.Thread(target=sample_until_done)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()


class Workers:
    """The processes of `slotlock worker`."""

    def __init__(self, environment: dict[str, str], logs: Path, stack: ExitStack) -> None:
        self._environment = environment
        self._logs = logs
        self._stack = stack
        self.pids: dict[str, int] = {}

    def start(self) -> None:
        """Start those that do not run."""
        for number in range(len(self.pids), WORKERS):
            log = self._stack.enter_context((self._logs / f"worker-{number}.log").open("wb"))
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
    """How many requests the app says are in line."""
    text = httpx.get(app.url + "/metrics", trust_env=False, timeout=30).text
    families = text_string_to_metric_families(text)
    queued = (family for family in families if family.name == "slotlock_queue_length")
    return sum(sample.value for family in queued for sample in family.samples)


def start_simulation(
    app: TargetApp, args: argparse.Namespace, *extra_options: str
) -> "subprocess.Popen[bytes]":
    """The simulation, which prints for itself."""
    crowd = {"people": args.people, "slots": args.slots, "places": args.places}
    options = [f"--{name}={value}" for name, value in {**crowd, "asks": args.asks}.items()]
    words = [
        "-m",
        "slotlock",
        "simulate",
        "--by=queue",
        f"--url={app.url}",
        *options,
        *extra_options,
    ]
    return subprocess.Popen([sys.executable, *words], env={**os.environ, **ADMIN})


def run_round(
    app: TargetApp, workers: Workers, args: argparse.Namespace, extra_options: Sequence[str]
) -> int:
    """One rush; the exit code of the simulation."""
    rushing = start_simulation(app, args, *extra_options)
    if not args.late:
        workers.start()
    before = 0.0
    while args.late and not workers.pids and rushing.poll() is None:
        time.sleep(SETTLED_S)
        if (now := queue_length(app)) == before > 0:
            print(f"{now:,.0f} requests are in line; now the workers start", flush=True)
            workers.start()
        before = now
    return rushing.wait()


def main() -> int:
    """Let them rush; 1 when a round broke an invariant."""
    parser = argparse.ArgumentParser(prog="bench.rush", description=__doc__)
    for name, value in (("people", 2500), ("slots", 20), ("places", 25), ("asks", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--late", action="store_true", help="start workers when all are in line")
    parser.add_argument("--plot", help="of the first round, a file that ends in .svg or .png")
    asked = parser.parse_args()
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
        words = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
        command = Command(words, environment, PROJECT, "/readyz")
        app = stack.enter_context(running("app", command, folder))
        workers = Workers(environment, folder, stack)
        for number in range(asked.rounds):
            print(f"\nround {number + 1} of {asked.rounds}", flush=True)
            more = [f"--plot={asked.plot}"] if asked.plot and number == 0 else []
            with watch_memory(lambda: _processes(app) | workers.pids) as memory:
                failed |= run_round(app, workers, asked, more) != 0
            _print_memory(memory)
    return int(failed)


def _processes(app: TargetApp) -> dict[str, int]:
    # Beside those that serve there is their parent, and one of Python's own that does nothing.
    busy = [pid for pid, spent in app.cpu_seconds().items() if pid != app.process.pid and spent > 1]
    return {f"app {number}": pid for number, pid in enumerate(sorted(busy))}


def _print_memory(memory: Memory) -> None:
    print("memory, MiB (most during the round, at its end):")
    for name in sorted(memory.peak):
        print(f"  {name:10} {memory.peak[name]:7.0f} {memory.last[name]:7.0f}")


if __name__ == "__main__":
    sys.exit(main())
