"""What the users of all campaigns have in common."""

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bench.soak.processes.servers import SoakError
from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.sessions import NewSession


@dataclass(slots=True, eq=False, kw_only=True)
class ClientUser:
    """A user with a session and a random generator of their own; the id is in hex.

    `known_bookings` are the latest of this user.
    """

    name: str
    id: str
    token: str
    rng: random.Random
    key_count: int = 0
    known_bookings: deque[str] = field(default_factory=lambda: deque(maxlen=8))

    def next_key(self) -> str:
        """Return an idempotency key that this user never sent."""
        self.key_count += 1
        return f"{self.name.replace(' ', '-')}-{self.key_count}"


@dataclass(frozen=True, slots=True)
class Session:
    """An account with its tokens."""

    user: User
    token: str
    refresh_token: str


class Accounts:
    """Creates accounts, whose tokens last for the whole run, on a new database."""

    def __init__(
        self, repositories: Repositories, secret: str, issued_at: datetime, lasts: timedelta
    ) -> None:
        self._repositories, self._tokens = repositories, TokenSigner([secret])
        self._issued_at, self._until = issued_at, issued_at + lasts

    async def create(self, name: str, email: str, role: Role) -> Session:
        """Return a new account that is signed in; raises SoakError."""
        now, until = self._issued_at, self._until
        user = await self._repositories.users.insert(name, email, role, "no password", now)
        if user is None:
            raise SoakError("the database is not new")
        refresh_id = new_token_id()
        opened = await self._repositories.sessions.open(NewSession(user.id, refresh_id, now, until))
        if opened is None:
            raise SoakError("a new user cannot sign in")
        claims = TokenClaims(user.id, opened[0], new_token_id(), until)
        return Session(
            user,
            self._tokens.sign("access", claims, now),
            self._tokens.sign("refresh", replace(claims, id=refresh_id), now),
        )


async def sleep_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Sleep for some time, but at most until the event; return whether it is still not set."""
    if event.is_set():
        return False
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return True
    return False
