"""slotlock as a target: its command, and users with sessions."""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.accounts import create_accounts
from bench.app_process import PROJECT, import_path
from bench.comparison.targets.apps import Command
from slotlock.devserver.embedded import EmbeddedServers

DATABASE_NAME = "bench_slotlock"
SECRET = secrets.token_hex(32)


# The rates are charged for every request and refuse none.
RATE_LIMITS_ON = {
    "SLOTLOCK_RATE_LIMITS": "on",
    "SLOTLOCK_RATE_READS": "1000000",
    "SLOTLOCK_RATE_WRITES": "1000000",
}
RATE_LIMITS_OFF = {"SLOTLOCK_RATE_LIMITS": "off"}


def command(
    servers: EmbeddedServers,
    processes: int,
    options: Mapping[str, str],
    database_name: str = DATABASE_NAME,
    project: Path = PROJECT,
) -> Command:
    """Return the command that starts so many processes of a checkout with these settings."""
    arguments = (sys.executable, "-m", "slotlock", "serve", "--workers", str(processes))
    environment = {**settings(servers, database_name), **import_path(project), **options}
    return Command(arguments, environment, project, "/readyz")


def settings(servers: EmbeddedServers, database_name: str = DATABASE_NAME) -> dict[str, str]:
    """Return the settings that every process needs."""
    return {
        "SLOTLOCK_MONGO_URL": _mongo_url(servers, database_name),
        "SLOTLOCK_REDIS_URL": servers.redis_url,
        "SLOTLOCK_SECRET_KEY": SECRET,
    }


def tokens(servers: EmbeddedServers, count: int, database_name: str = DATABASE_NAME) -> list[str]:
    """Return the access tokens of new sessions, one per new user."""
    url = _mongo_url(servers, database_name)
    return [account.token for account in asyncio.run(create_accounts(url, SECRET, count))]


def _mongo_url(servers: EmbeddedServers, database_name: str) -> str:
    return servers.mongo_url.replace("/?", f"/{database_name}?", 1)
