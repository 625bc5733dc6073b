"""People who are signed in without waiting for 200 passwords to be hashed."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from slotlock.auth.container import Auth, build_auth
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import TokenSigner
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET


@dataclass(frozen=True)
class UserTokens:
    """Access tokens of many members and of one organiser."""

    members: list[str]
    organizer: str


@asynccontextmanager
async def auth_for_database(mongo_url: str) -> AsyncIterator[Auth]:
    """The app's own sign-in, straight on the database."""
    client, database = connect(mongo_url)
    passwords = PasswordHasher()
    try:
        signer, throttle = TokenSigner([SECRET]), NoLoginThrottle()
        yield build_auth(repositories_on(database), passwords, signer, utc_now, throttle)
    finally:
        passwords.close()
        await client.close()


async def insert_user(
    auth: Auth, role: Role = Role.MEMBER, password_hash: str | None = None
) -> User:
    """A new person."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.insert(
        "Somebody", email, role, password_hash or "no password", utc_now()
    )
    assert user is not None
    return user


async def sign_in_new_user(auth: Auth, role: Role) -> str:
    """A new person's access token."""
    return (await open_session(auth, await insert_user(auth, role))).access_token


async def create_user_tokens(environment: Mapping[str, str], member_count: int) -> UserTokens:
    """So many people and an organiser, new and signed in."""
    async with auth_for_database(environment["SLOTLOCK_MONGO_URL"]) as auth:
        roles = [Role.ORGANIZER] + [Role.MEMBER] * member_count
        tokens: list[str] = []
        for some in chunked(roles, 50):  # who waits in line for 5 s is told that MongoDB is away
            tokens += await asyncio.gather(*(sign_in_new_user(auth, role) for role in some))
        return UserTokens(tokens[1:], tokens[0])
