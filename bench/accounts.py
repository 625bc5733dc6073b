"""Accounts with sessions, written into the database: a registration over HTTP hashes a password."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.sessions import NewSession

# More concurrent operations would wait too long for MongoDB and fail as unavailable.
BATCH_SIZE = 50
TOKEN_LIFETIME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Account:
    """A user with a session, whose tokens both last as long."""

    user_id: str
    email: str
    token: str
    refresh_token: str


async def create_accounts(
    mongo_url: str,
    secret: str,
    count: int,
    role: Role = Role.MEMBER,
    lifetime: timedelta = TOKEN_LIFETIME,
    groups: Sequence[str] = (),
) -> list[Account]:
    """Return new accounts that are signed in; the user of index n has group n of the groups."""
    async with open_database(mongo_url) as database:
        creator = _Creator(Repositories(database), TokenSigner([secret]), role, lifetime, groups)
        accounts: list[Account] = []
        for batch in chunked(range(count), BATCH_SIZE):
            accounts += await asyncio.gather(*map(creator.create, batch))
        return accounts


@dataclass(frozen=True, slots=True)
class _Creator:
    repositories: Repositories
    signer: TokenSigner
    role: Role
    lifetime: timedelta
    groups: Sequence[str]

    async def create(self, index: int) -> Account:
        now, email = datetime.now(UTC), f"{secrets.token_hex(8)}@slotlock.test"
        users, until = self.repositories.users, now + self.lifetime
        user = await users.insert("Somebody", email, self.role, "no password", now)
        if user is None:
            raise RuntimeError("a random address is taken")
        if self.groups:
            group = self.groups[index % len(self.groups)]
            await users.set_groups(UserId(user.id), [group], None, now)
        refresh_id = new_token_id()
        opened = await self.repositories.sessions.open(NewSession(user.id, refresh_id, now, until))
        if opened is None:
            raise RuntimeError("a new user cannot sign in")
        claims = TokenClaims(user.id, opened[0], new_token_id(), until)
        return Account(
            str(user.id),
            email,
            self.signer.sign("access", claims, now),
            self.signer.sign("refresh", replace(claims, id=refresh_id), now),
        )
