"""slotlock as a target: its command, and users with sessions."""

import asyncio
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.comparison.targets.apps import Command
from slotlock.auth.container import Auth, build_auth
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import TokenSigner
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.services.container import utc_now

PROJECT = Path(__file__).parents[3]
DATABASE_NAME = "bench_slotlock"
# More concurrent operations would wait too long for MongoDB and fail as unavailable.
SIGN_IN_BATCH_SIZE = 50
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
    environment = {**settings(servers, database_name), **options}
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
    return asyncio.run(_sign_in(_mongo_url(servers, database_name), count))


def _mongo_url(servers: EmbeddedServers, database_name: str) -> str:
    return servers.mongo_url.replace("/?", f"/{database_name}?", 1)


async def _sign_in(url: str, count: int) -> list[str]:
    client, database = connect(url)
    passwords = PasswordHasher(threads=1)
    try:
        signer, throttle = TokenSigner([SECRET]), NoLoginThrottle()
        auth = build_auth(repositories_on(database), passwords, signer, utc_now, throttle)
        access_tokens: list[str] = []
        for batch in chunked(range(count), SIGN_IN_BATCH_SIZE):
            access_tokens += await asyncio.gather(*(_open_session(auth) for _ in batch))
    finally:
        passwords.close()
        await client.close()
    return access_tokens


async def _open_session(auth: Auth) -> str:
    return (await open_session(auth, await _create_user(auth))).access_token


async def _create_user(auth: Auth) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.insert("Somebody", email, Role.MEMBER, "no password", utc_now())
    if user is None:
        raise RuntimeError("a random address is taken")
    return user
