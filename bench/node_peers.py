"""The two Node peers: installing them from their lock file, starting them, signing for them."""

import secrets
import time
from pathlib import Path
from urllib.parse import urlsplit

import jwt
from bson import ObjectId

from bench import packages
from bench.target_apps import Command
from slotlock.devserver.embedded import EmbeddedServers

SOURCE = Path(__file__).parent / "peers"
TOKEN_TTL_S = 15 * 60  # as long as slotlock's own
SECRET = secrets.token_hex(32)


def install(home: Path) -> None:
    """Have the peers and their locked packages in the folder. Errors: InstallError."""
    packages.install(SOURCE, home)


def command(
    home: Path, script: str, ready_path: str, servers: EmbeddedServers, database_name: str
) -> Command:
    """Two processes of a peer on a database of its own."""
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
    """Fresh access tokens of so many people."""
    now = int(time.time())
    return [
        jwt.encode({"sub": str(ObjectId()), "iat": now, "exp": now + TOKEN_TTL_S}, SECRET, "HS256")
        for _ in range(count)
    ]
