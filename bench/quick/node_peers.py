"""The two Node peers: their packages, their commands and their access tokens."""

import secrets
import time
from pathlib import Path
from urllib.parse import urlsplit

import jwt
from bson import ObjectId

from bench import packages
from bench.quick.target_apps import Command
from slotlock.devserver.embedded import EmbeddedServers

SOURCE = Path(__file__).parent / "peers"
TOKEN_TTL_S = 15 * 60  # the lifetime of slotlock's tokens
SECRET = secrets.token_hex(32)


def install(home: Path) -> None:
    """Install the peers and their locked packages in a folder; raises InstallError."""
    packages.install(SOURCE, home)


def command(
    home: Path, script: str, ready_path: str, servers: EmbeddedServers, database_name: str
) -> Command:
    """Return the command that starts two processes of a peer on this database."""
    environment = {
        "NODE_ENV": "production",
        "NPROC": "2",
        "TARGET": f"./{script}",
        "MONGO_URL": servers.mongo_url,
        "MONGO_DB": database_name,
        "REDIS_PORT": str(urlsplit(servers.redis_url).port),
        "SECRET": SECRET,
    }
    return Command(("node", "cluster.js"), environment, home, ready_path)


def tokens(count: int) -> list[str]:
    """Return new access tokens, one per user."""
    now = int(time.time())
    return [
        jwt.encode({"sub": str(ObjectId()), "iat": now, "exp": now + TOKEN_TTL_S}, SECRET, "HS256")
        for _ in range(count)
    ]
