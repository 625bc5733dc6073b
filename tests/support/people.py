"""People who are signed in without waiting for 200 passwords to be hashed."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

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
from tests.support.processes import SECRET


@dataclass(frozen=True)
class Crowd:
    """Access tokens of many members and of one organiser."""

    members: list[str]
    organiser: str


@asynccontextmanager
async def auth_on(mongo_url: str) -> AsyncIterator[Auth]:
    """The app's own sign-in, straight on the database."""
    client, database = mongo.connect(mongo_url)
    passwords = Passwords()
    try:
        users, sessions = Users(database), Sessions(database)
        yield Auth(users, sessions, passwords, Tokens([SECRET]), utc_now)
    finally:
        passwords.close()
        await client.close()


async def somebody(auth: Auth, role: Role = Role.MEMBER, password_hash: str | None = None) -> User:
    """A new person."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.add("Somebody", email, role, password_hash or "no password", utc_now())
    assert user is not None
    return user


async def sign_in(auth: Auth, role: Role) -> str:
    """A new person's access token."""
    return (await open_session(auth, await somebody(auth, role))).access_token


async def make_crowd(environment: Mapping[str, str], size: int) -> Crowd:
    """So many people and an organiser, new and signed in."""
    async with auth_on(environment["SLOTLOCK_MONGO_URL"]) as auth:
        roles = [Role.ORGANIZER] + [Role.MEMBER] * size
        tokens: list[str] = []
        for some in in_parts(roles, 50):  # who waits in line for 5 s is told that MongoDB is away
            tokens += await asyncio.gather(*(sign_in(auth, role) for role in some))
        return Crowd(tokens[1:], tokens[0])
