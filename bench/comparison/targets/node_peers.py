"""The Node peers: their packages, their commands and their access tokens."""

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import jwt
from bson import ObjectId

from bench import packages
from bench.comparison.targets.apps import Command
from slotlock.devserver.embedded import EmbeddedServers

SOURCE = Path(__file__).parents[1] / "peers"
DATABASE_NAME = "bench_peers"
TOKEN_TTL_S = 15 * 60  # the lifetime of slotlock's tokens
SECRET = secrets.token_hex(32)
# Batches of conditional updates, and a cache of verified tokens.
P2B_OPTIONS = {"BATCH": "1", "JWT_CACHE": "1"}


def install(home: Path) -> None:
    """Install the peers and their locked packages in a folder; raises InstallError."""
    packages.install(SOURCE, home)


def p1_command(home: Path, servers: EmbeddedServers, processes: int) -> Command:
    """Return the command that starts P1."""
    return _command(home, "p1_express.js", "/ping", servers, processes, {})


def p2_command(
    home: Path, servers: EmbeddedServers, processes: int, options: Mapping[str, str]
) -> Command:
    """Return the command that starts P2 with these options."""
    ready_path = "/graphql?query=%7Bping%7D"
    return _command(home, "p2_mercurius.js", ready_path, servers, processes, options)


def _command(
    home: Path,
    script: str,
    ready_path: str,
    servers: EmbeddedServers,
    processes: int,
    options: Mapping[str, str],
) -> Command:
    environment = {
        "NODE_ENV": "production",
        "NPROC": str(processes),
        "TARGET": f"./{script}",
        "MONGO_URL": servers.mongo_url,
        "MONGO_DB": DATABASE_NAME,
        "REDIS_PORT": str(urlsplit(servers.redis_url).port),
        "SECRET": SECRET,
        **options,
    }
    return Command(("node", "cluster.js"), environment, home, ready_path)


def tokens(count: int) -> list[str]:
    """Return new access tokens, one per user."""
    now = int(time.time())
    return [
        jwt.encode({"sub": str(ObjectId()), "iat": now, "exp": now + TOKEN_TTL_S}, SECRET, "HS256")
        for _ in range(count)
    ]
