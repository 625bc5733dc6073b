"""Signed-in users, created in the database without hashing passwords."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.session_streams import SessionStreams
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import (
    ACCESS_TOKEN_TTL,
    REFRESH_TOKEN_TTL,
    TokenClaims,
    TokenSigner,
    new_token_id,
)
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.fair_scheduler import FairScheduler, SchedulerFullError
from slotlock.infrastructure.mongo.client import Document, connect
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.sessions import NewSession, session_to_document
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET
from tests.support.stores.cheap_hashes import NO_PASSWORD
from tests.support.stores.empty_database import build_indexes, stored_database


@dataclass(frozen=True)
class UserTokens:
    """Access tokens of members and of one organizer."""

    members: list[str]
    organizer: str


async def caller_of(auth: Auth, session: SignedInSession) -> Caller:
    """Return the caller of a session."""
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    return caller


@asynccontextmanager
async def auth_for_database(mongo_url: str) -> AsyncIterator[Auth]:
    """Open the app's authentication on a database."""
    client, database = connect(mongo_url)
    passwords = PasswordHasher()
    try:
        signer = TokenSigner([SECRET])
        repositories = Repositories(database)
        await build_indexes(mongo_url, repositories.indexes)
        yield Auth(repositories, passwords, signer, utc_now, login_throttle=None)
    finally:
        passwords.close()
        await client.close()


class RecordedStreams(SessionStreams):
    """Records whose streams are checked at once, before the change stream names a session."""

    def __init__(self) -> None:
        super().__init__()
        self.checked: list[UserId] = []

    def session_changed(self, user_id: UserId) -> None:
        """Record the user."""
        self.checked.append(user_id)


def fill_hash_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no password hash have a place in a queue."""

    async def refuse(*_: object, **_options: object) -> str:
        raise SchedulerFullError

    monkeypatch.setattr(FairScheduler, "_wait_for_result", refuse)


def new_email() -> str:
    """Return an address without an account."""
    return f"{secrets.token_hex(8)}@slotlock.test"


async def insert_user(
    auth: Auth,
    role: Role = Role.MEMBER,
    password_hash: str | None = None,
    *,
    self_registered: bool = False,
) -> User:
    """Insert a new user."""
    password_hash = password_hash or NO_PASSWORD
    user = await auth.repositories.users.insert(
        "Somebody", new_email(), role, password_hash, utc_now(), self_registered=self_registered
    )
    assert user is not None
    return user


async def sign_in_new_user(auth: Auth, role: Role) -> str:
    """Insert a new user and return an access token."""
    return (await open_session(auth, await insert_user(auth, role))).access_token


def create_user_tokens(environment: Mapping[str, str], member_count: int) -> UserTokens:
    """Insert this many members and an organizer, with their sessions, and return access tokens.

    Two writes insert them all: two transactions for each user, as in the app, take 10 ms.
    """
    database = stored_database(environment["SLOTLOCK_MONGO_URL"])
    signer, now = TokenSigner([SECRET]), utc_now()
    users: list[Document] = []
    sessions: list[Document] = []
    tokens: list[str] = []
    for role in [Role.ORGANIZER] + [Role.MEMBER] * member_count:
        user = to_new_document("Somebody", new_email(), role, NO_PASSWORD, now)
        user_id, session_id = UserId(str(user["_id"])), new_token_id()
        session = NewSession(user_id, new_token_id(), now, now + REFRESH_TOKEN_TTL)
        claims = TokenClaims(user_id, session_id, new_token_id(), now + ACCESS_TOKEN_TTL)
        users.append(user)
        sessions.append(session_to_document(session_id, session, role))
        tokens.append(signer.sign("access", claims, now))
    database["users"].insert_many(users)
    database["sessions"].insert_many(sessions)
    return UserTokens(tokens[1:], tokens[0])
