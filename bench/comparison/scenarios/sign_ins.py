"""Sign-ins in the background of a run, at a constant rate."""

import asyncio
import itertools
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx
from pymongo import MongoClient

from bench.comparison.targets.slotlock_target import DATABASE_NAME
from bench.comparison.targets.slots import Document
from slotlock.auth.passwords import PasswordHasher
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.users.documents import to_new_document

# One account allows 50 sign-ins an hour.
ACCOUNTS = 200
PASSWORD = secrets.token_hex(16)
DOCUMENT = """mutation SignIn($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) { __typename }
}"""


def create_accounts(client: MongoClient[Document]) -> list[str]:
    """Insert the accounts that sign in, and return their addresses."""
    with closing(PasswordHasher(threads=1)) as hasher:
        password_hash = asyncio.run(hasher.hash(PASSWORD))
    now = datetime.now(UTC)
    emails = [f"{secrets.token_hex(8)}@slotlock.test" for _ in range(ACCOUNTS)]
    client[DATABASE_NAME]["users"].insert_many(
        [to_new_document("Somebody", email, Role.MEMBER, password_hash, now) for email in emails]
    )
    return emails


@dataclass(slots=True)
class SignIns:
    """Signs in so many times a second while a run lasts, and counts the outcomes."""

    per_second: int
    emails: Sequence[str]
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        """The number of sign-ins that opened no session."""
        return sum(count for outcome, count in self.outcomes.items() if outcome != "Session")

    @contextmanager
    def running_against(self, url: str) -> Iterator[None]:
        """Send sign-ins until the context is left."""
        done = threading.Event()
        thread = threading.Thread(target=self._send, args=(url, done))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _send(self, url: str, done: threading.Event) -> None:
        emails = itertools.cycle(self.emails)
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            next_at = time.monotonic()
            while not done.wait(max(0.0, next_at - time.monotonic())):
                outcome = _sign_in(http, next(emails))
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
                next_at += 1 / self.per_second


def _sign_in(http: httpx.Client, email: str) -> str:
    """Return the type of the outcome, or the reason why there is none."""
    variables = {"email": email, "password": PASSWORD}
    try:
        response = http.post("/graphql", json={"query": DOCUMENT, "variables": variables})
        return str(response.json()["data"]["login"]["__typename"])
    except (httpx.TransportError, ValueError, KeyError, TypeError) as error:
        return type(error).__name__
