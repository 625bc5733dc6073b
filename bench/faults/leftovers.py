"""What must not be there at the end: locks, queued requests, mails, tracebacks, more memory."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.faults.topology.apps import FaultApp
from bench.faults.topology.deployment import Deployment
from bench.faults.topology.redis_servers import RedisNode
from slotlock.infrastructure.redis import keys

Problem = tuple[str, str]

# What a lock leaves in Redis while somebody holds it or waits for it.
LOCK_PATTERNS = ("slotlock:{*}:lock", "slotlock:{*}:queue", "slotlock:{*}:heartbeats")
# Workers renew these locks for as long as they run.
RENEWED = tuple(f"{{{name}" for name in (keys.ADMISSION_LOCK_PREFIX, *keys.WORKER_LOCKS))
LOCK_EXPIRY_S = 15.0
QUEUE_LENGTHS = {"requests": "XLEN", "dead_letters": "XLEN", "tickets": "HLEN"}
MAX_GROWTH_MIB = 120.0
SHOWN_LINES = 40
MAILS_TIMEOUT_S = 240.0


async def find_leftovers(deployment: Deployment) -> list[Problem]:
    """Return the problems that Redis shows once no client sends requests, after some time."""
    return [
        problem
        for node in deployment.redis.nodes
        for problem in await asyncio.to_thread(_find_in_node, node)
    ]


def _find_in_node(node: RedisNode) -> list[Problem]:
    # Requests whose clients hung up are still in the queue, and locks expire.
    deadline = time.monotonic() + LOCK_EXPIRY_S
    while (problems := _find_now(node)) and time.monotonic() < deadline:
        time.sleep(1.0)
    return problems


def _find_now(node: RedisNode) -> list[Problem]:
    problems = [("lock left", f"{lock} at {node.name}") for lock in _locks(node)]
    for kind, command in QUEUE_LENGTHS.items():
        problems += [
            ("queue not empty", f"{key}: {length} at {node.name}")
            for key in _keys(node, f"slotlock:{{queue:*}}:{kind}")
            if (length := node.execute(command, key))
        ]
    return problems


def _locks(node: RedisNode) -> list[str]:
    found = [key for pattern in LOCK_PATTERNS for key in _keys(node, pattern)]
    return [key for key in found if not any(part in key for part in RENEWED)]


def _keys(node: RedisNode, pattern: str) -> list[str]:
    return [key.decode() for key in node.execute("KEYS", pattern) or ()]


async def finish_mails(deployment: Deployment) -> float:
    """Wait until all mails are sent, also those of processes that were killed with a lease.

    Return the time of the campaign until which all changes were read.
    """
    until, until_time = time.monotonic(), datetime.now(UTC)
    while time.monotonic() < until + MAILS_TIMEOUT_S:
        await asyncio.to_thread(deployment.members.end_mail_waits)
        await asyncio.sleep(2.0)
        if not await asyncio.to_thread(deployment.members.has_open_mails, until_time):
            break
    return until


def find_process_problems(processes: list[FaultApp]) -> Iterator[Problem]:
    """Yield what the processes show that have ended: exit codes, their memory, their logs."""
    for process in processes:
        for code in filter(None, process.exit_codes):
            yield "bad exit", f"{process.name} ended with {code} on SIGTERM"
        for start_mib, end_mib in process.memory_mib:
            if end_mib - start_mib > MAX_GROWTH_MIB:
                yield "memory", f"{process.name} grew from {start_mib:.0f} to {end_mib:.0f} MiB"
        yield from _tracebacks(process.name, process.log_file)


def _tracebacks(name: str, log_file: Path) -> Iterator[Problem]:
    lines = log_file.read_text(errors="replace").splitlines()
    for index, line in enumerate(lines):
        if line.startswith("Traceback"):
            shown = lines[max(index - 1, 0) : index + SHOWN_LINES]
            yield "traceback", "\n    ".join([f"{name} line {index + 1}:", *shown])
