"""What an interval cost: commands and documents of MongoDB, calls of Valkey, CPU, memory."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.comparison.servers import BenchmarkServers
from bench.comparison.targets.apps import TargetApp, process_cpu_seconds

# Sent by this process to read the counters.
OWN_COMMANDS = {"mongo serverStatus": 1, "valkey info": 1}


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts per second of an interval, shares of a core, and the memory of the apps at its end.

    `commands` counts by server and command, as `mongo find` or `valkey eval`. Valkey counts the
    calls inside scripts as well.
    """

    commands: Counter[str]
    documents: float
    examined: float
    app: float
    mongod: float
    valkey: float
    app_bytes: int

    @property
    def mongo(self) -> float:
        """The commands to MongoDB per second."""
        return self._sum("mongo")

    @property
    def redis(self) -> float:
        """The calls of Valkey per second."""
        return self._sum("valkey")

    def _sum(self, server: str) -> float:
        return sum(rate for name, rate in self.commands.items() if name.startswith(server))


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    commands: Counter[str]
    documents: int
    examined: int
    # Of the apps, mongod and Valkey.
    cpu_s: tuple[float, float, float]


def measure(
    apps: Sequence[TargetApp],
    servers: BenchmarkServers,
    seconds: float,
    own_rates: Mapping[str, float],
) -> Rates:
    """Count for so many seconds, without the commands that this process sends a second."""
    before = _take(apps, servers)
    time.sleep(seconds)
    after = _take(apps, servers)
    elapsed_s = after.at - before.at
    app_s, mongod_s, valkey_s = (
        (end - start) / elapsed_s for start, end in zip(before.cpu_s, after.cpu_s, strict=True)
    )
    commands = after.commands - before.commands - Counter(OWN_COMMANDS)
    return Rates(
        commands=Counter(
            {
                name: max(count / elapsed_s - own_rates.get(name, 0.0), 0.0)
                for name, count in commands.items()
            }
        ),
        documents=(after.documents - before.documents) / elapsed_s,
        examined=(after.examined - before.examined) / elapsed_s,
        app=app_s,
        mongod=mongod_s,
        valkey=valkey_s,
        app_bytes=sum(app.memory_bytes() for app in apps),
    )


def _take(apps: Sequence[TargetApp], servers: BenchmarkServers) -> _Sample:
    metrics = servers.client.admin.command("serverStatus")["metrics"]
    commands: Counter[str] = Counter()
    for name, counts in metrics["commands"].items():
        if isinstance(counts, dict) and counts.get("total"):
            commands[f"mongo {name}"] = int(counts["total"])
    for name, counts in servers.redis.info("commandstats").items():
        commands[f"valkey {name.removeprefix('cmdstat_')}"] = int(counts["calls"])
    scanned = metrics["queryExecutor"]
    return _Sample(
        time.monotonic(),
        commands,
        int(metrics["document"]["returned"]),
        int(scanned["scanned"]) + int(scanned["scannedObjects"]),
        (
            sum(sum(app.cpu_seconds().values()) for app in apps),
            process_cpu_seconds(servers.pids.mongod),
            process_cpu_seconds(servers.pids.valkey),
        ),
    )
