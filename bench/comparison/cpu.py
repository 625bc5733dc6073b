"""The CPU time of an app and of its servers during a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.comparison.targets.apps import TargetApp, process_cpu_seconds


@dataclass(frozen=True, slots=True)
class ServerPids:
    """The processes of the servers that all targets share."""

    mongod: int
    valkey: int

    @classmethod
    def read(cls, data_dir: Path) -> "ServerPids":
        """Return the processes of the embedded servers with this data directory."""
        return cls(*(int((data_dir / f"{name}.pid").read_text()) for name in ("mongod", "valkey")))


@dataclass(frozen=True, slots=True)
class CpuSample:
    """The CPU seconds so far: of each process of the app by pid, and of the servers."""

    app_s: Mapping[int, float]
    mongod_s: float
    valkey_s: float

    @classmethod
    def take(cls, app: TargetApp, servers: ServerPids) -> "CpuSample":
        """Return the present times."""
        return cls(
            app.cpu_seconds(),
            process_cpu_seconds(servers.mongod),
            process_cpu_seconds(servers.valkey),
        )


@dataclass(frozen=True, slots=True)
class CpuTime:
    """The CPU seconds of a run; `app_s` lists the processes of the app, the busiest first."""

    app_s: tuple[float, ...]
    mongod_s: float
    valkey_s: float

    @classmethod
    def between(cls, before: CpuSample, after: CpuSample) -> "CpuTime":
        """Return the time that was spent between two samples."""
        spent = (seconds - before.app_s.get(pid, 0.0) for pid, seconds in after.app_s.items())
        return cls(
            tuple(sorted(spent, reverse=True)),
            after.mongod_s - before.mongod_s,
            after.valkey_s - before.valkey_s,
        )

    @property
    def app_sum_s(self) -> float:
        """The time of all processes of the app."""
        return sum(self.app_s)

    @property
    def busiest_share(self) -> float:
        """The share of the busiest process in the time of the app."""
        return self.app_s[0] / self.app_sum_s if self.app_sum_s else 0.0
