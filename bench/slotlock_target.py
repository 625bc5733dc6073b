"""slotlock as a target: started as an operator would, with people signed in through its stores."""

import asyncio
import secrets
import sys
from pathlib import Path

from bench.target_apps import Command
from slotlock.auth.container import Auth
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import TokenSigner
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.services.container import utc_now

PROJECT = Path(__file__).parent.parent
# Who waits too long in line for MongoDB is told that it is away.
SIGN_IN_BATCH_SIZE = 50
SECRET = secrets.token_hex(32)


def command(servers: EmbeddedServers, database_name: str) -> Command:
    """Two processes of slotlock on a database of its own."""
    environment = {
        "SLOTLOCK_MONGO_URL": _url(servers, database_name),
        "SLOTLOCK_REDIS_URL": servers.redis_url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
    }
    words = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
    return Command(words, environment, PROJECT, "/readyz")


def tokens(servers: EmbeddedServers, database_name: str, count: int) -> list[str]:
    """Fresh access tokens of so many people who are signed in."""
    return asyncio.run(_sign_in(_url(servers, database_name), count))


async def _sign_in(mongo_url: str, count: int) -> list[str]:
    client, database = connect(mongo_url)
    passwords = PasswordHasher(threads=1)
    try:
        users, sessions = UserRepository(database), SessionRepository(database)
        signer, throttle = TokenSigner([SECRET]), NoLoginThrottle()
        auth = Auth(users, sessions, passwords, signer, utc_now, throttle)
        opened: list[str] = []
        for some in chunked(range(count), SIGN_IN_BATCH_SIZE):
            opened += await asyncio.gather(*(_open_session(auth) for _ in some))
    finally:
        passwords.close()
        await client.close()
    return opened


async def _open_session(auth: Auth) -> str:
    return (await open_session(auth, await _create_user(auth))).access_token


async def _create_user(auth: Auth) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.insert("Somebody", email, Role.MEMBER, "no password", utc_now())
    if user is None:
        raise RuntimeError("a random address is taken")
    return user


def _url(servers: EmbeddedServers, database_name: str) -> str:
    return servers.mongo_url.replace("/?", f"/{database_name}?", 1)
