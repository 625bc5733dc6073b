"""The machine under the figures: what it needs to have, and what it is."""

import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench.slots import Document

REQUIRED_TOOLS = {
    "wrk": "it makes the load; on Debian and Ubuntu: apt install wrk",
    "node": "the peers run on it; Node 20 or newer",
    "npm": "it installs the peers' packages; it comes with Node",
}


def missing_tools() -> list[str]:
    """A line for each program that is not on PATH."""
    return [
        f"{tool} is missing: {why}"
        for tool, why in REQUIRED_TOOLS.items()
        if not shutil.which(tool)
    ]


def machine_summary() -> str:
    """The machine in a line, with the date and how busy it was."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    now, load = datetime.now(UTC), os.getloadavg()[0]
    return f"{now:%Y-%m-%d %H:%M UTC}, {os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}"


def describe_machine(client: MongoClient[Document], redis: "Redis") -> dict[str, str]:
    """What the figures were taken on."""
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
    known = redis.info("server")
    return str(known.get("valkey_version") or f"Redis {known['redis_version']}")


def _version(*command: str) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+[\w.]*", said.stdout + said.stderr)
    return found[0] if found else "unknown"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1].strip() if found else platform.processor() or "unknown"
