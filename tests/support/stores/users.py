"""Signed-in users, created in the database without hashing passwords."""

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
    """Access tokens of members and of one organizer."""

    members: list[str]
    organizer: str


@asynccontextmanager
async def auth_for_database(mongo_url: str) -> AsyncIterator[Auth]:
    """Open the app's authentication on a database."""
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
    """Insert a new user."""
    email = f"{secrets.token_hex(8)}@slotlock.test"
    user = await auth.users.insert(
        "Somebody", email, role, password_hash or "no password", utc_now()
    )
    assert user is not None
    return user


async def sign_in_new_user(auth: Auth, role: Role) -> str:
    """Insert a new user and return an access token."""
    return (await open_session(auth, await insert_user(auth, role))).access_token


async def create_user_tokens(environment: Mapping[str, str], member_count: int) -> UserTokens:
    """Insert this many members and an organizer and return their access tokens."""
    async with auth_for_database(environment["SLOTLOCK_MONGO_URL"]) as auth:
        roles = [Role.ORGANIZER] + [Role.MEMBER] * member_count
        tokens: list[str] = []
        for chunk in chunked(roles, 50):  # more concurrent operations would time out
            tokens += await asyncio.gather(*(sign_in_new_user(auth, role) for role in chunk))
        return UserTokens(tokens[1:], tokens[0])
