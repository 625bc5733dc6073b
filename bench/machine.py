"""The machine of a benchmark: its required tools and its description."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench.comparison.targets.slots import Document

REQUIRED_TOOLS = {
    "wrk": "generates the load; on Debian and Ubuntu: apt install wrk",
    "node": "runs the peers; Node 20 or newer",
    "npm": "installs the peers' packages; comes with Node",
}


def missing_tools(tools: Iterable[str] = tuple(REQUIRED_TOOLS)) -> list[str]:
    """Return a line for each of these programs that is not on PATH."""
    return [
        f"{tool} is missing: it {REQUIRED_TOOLS[tool]}" for tool in tools if not shutil.which(tool)
    ]


def machine_summary() -> str:
    """Return the date, the size of the machine and its load in one line."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    now, load = datetime.now(UTC), os.getloadavg()[0]
    return f"{now:%Y-%m-%d %H:%M UTC}, {os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}"


def load_warning() -> str | None:
    """Return a warning if other programs use the machine, or None."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load < cores / 2:
        return None
    return f"!!! other programs use this machine (load {load:.1f}): do not quote these figures"


def describe_machine(client: MongoClient[Document], redis: "Redis") -> dict[str, str]:
    """Return the properties of the machine, with the versions of the software."""
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": f"{os.cpu_count()} ({_processor()})",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "load before": load,
        "Python": platform.python_version(),
        "Node": _version("node", "--version"),
        "mongod": str(client.server_info()["version"]),
        "Valkey": _redis_version(redis),
        "wrk": _version("wrk", "-v"),
    }


def _redis_version(redis: "Redis") -> str:
    info = redis.info("server")
    return str(info.get("valkey_version") or f"Redis {info['redis_version']}")


def _version(*command: str) -> str:
    if not shutil.which(command[0]):
        return "missing"
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    match = re.search(r"\d+\.\d+[\w.]*", completed.stdout + completed.stderr)
    return match[0] if match else "unknown"


def _processor() -> str:
    cpu_info = Path("/proc/cpuinfo")
    text = cpu_info.read_text() if cpu_info.exists() else ""
    match = re.search(r"model name\s*:\s*(.+)", text)
    return match[1].strip() if match else platform.processor() or "unknown"
