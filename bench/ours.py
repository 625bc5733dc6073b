"""slotlock as a target: started as an operator would, with people signed in through its stores."""

import asyncio
import secrets
import sys
from pathlib import Path

from bench.apps import Command
from slotlock.api.embedded import Servers
from slotlock.auth.auth import Auth
from slotlock.auth.passwords import Passwords
from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import Tokens
from slotlock.desk.desk import utc_now
from slotlock.domain.people import Role, User
from slotlock.stores import mongo
from slotlock.stores.batches import in_parts
from slotlock.stores.sessions import Sessions
from slotlock.stores.users import Users

PROJECT = Path(__file__).parent.parent
# Who waits too long in line for MongoDB is told that it is away.
AT_ONCE = 50
SECRET = secrets.token_hex(32)


def command(servers: Servers, own: str) -> Command:
    """Two processes of slotlock on a database of its own."""
    environment = {
        "SLOTLOCK_MONGO_URL": _url(servers, own),
        "SLOTLOCK_REDIS_URL": servers.redis_url,
        "SLOTLOCK_SECRET_KEY": SECRET,
        "SLOTLOCK_RATE_LIMITS": "off",  # all requests come from one address
    }
    words = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
    return Command(words, environment, PROJECT, "/readyz")


def tokens(servers: Servers, own: str, people: int) -> list[str]:
    """Fresh access tokens of so many people who are signed in."""
    return asyncio.run(_sign_in(_url(servers, own), people))


async def _sign_in(mongo_url: str, people: int) -> list[str]:
    client, database = mongo.connect(mongo_url)
    passwords = Passwords(threads=1)
    try:
        users, sessions = Users(database), Sessions(database)
        auth = Auth(users, sessions, passwords, Tokens([SECRET]), utc_now)
        opened: list[str] = []
        for some in in_parts(range(people), AT_ONCE):
            opened += await asyncio.gather(*(_open_session(auth) for _ in some))
    finally:
        passwords.close()
        await client.close()
    return opened


async def _open_session(auth: Auth) -> str:
    return (await open_session(auth, await _person(auth))).access_token


async def _person(auth: Auth) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.add("Somebody", email, Role.MEMBER, "no password", utc_now())
    if user is None:
        raise RuntimeError("a random address is taken")
    return user


def _url(servers: Servers, own: str) -> str:
    return servers.mongo_url.replace("/?", f"/{own}?", 1)
