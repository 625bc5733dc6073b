"""Hash passwords with Argon2id on a few threads, with a queue of bounded length."""

import asyncio
import os
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from passlib.context import CryptContext

from slotlock.infrastructure.request_deadline import untimed

Result = TypeVar("Result")

# OWASP Password Storage Cheat Sheet, second Argon2id choice: 19 MiB, 2 iterations, 1 thread.
_CONTEXT = CryptContext(
    schemes=["argon2"],
    argon2__type="ID",
    argon2__memory_cost=19_456,
    argon2__time_cost=2,
    argon2__parallelism=1,
)

# At about 30 ms each, the queue takes 15 s on two cores; clients give up before that.
MAX_QUEUED_HASHES = 1000


class HasherBusyError(Exception):
    """The queue of password hashes is full."""


@cache
def _create_dummy_hash() -> str:
    """Return a hash for unknown accounts, so that checking them takes as long as known ones."""
    dummy_hash: str = _CONTEXT.hash(os.urandom(16).hex())
    return dummy_hash


def _normalize(password: str) -> str:
    # Keyboards differ in whether they send accented letters composed (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)


class PasswordHasher:
    """Hashes and checks passwords on threads; each hash takes about 30 ms by design."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or os.cpu_count() or 1, "password")
        self._pending_count = 0
        self._dummy_hash = _create_dummy_hash()

    async def hash(self, password: str) -> str:
        """Return the hash of the password. Raises: HasherBusyError."""
        return await self._run(_CONTEXT.hash, _normalize(password))

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Return whether the hash is of this password; None costs the same and never matches.

        Raises: HasherBusyError.
        """
        expected_hash = password_hash or self._dummy_hash
        matched = await self._run(_CONTEXT.verify, _normalize(password), expected_hash)
        return matched and password_hash is not None

    async def _run(self, function: Callable[..., Result], *arguments: str) -> Result:
        if self._pending_count >= MAX_QUEUED_HASHES:
            raise HasherBusyError
        self._pending_count += 1
        try:
            loop = asyncio.get_running_loop()
            with untimed():  # this queue has a limit of its own
                return await loop.run_in_executor(self._threads, function, *arguments)
        finally:
            self._pending_count -= 1

    def close(self) -> None:
        """Stop the threads and drop the queue."""
        self._threads.shutdown(wait=False, cancel_futures=True)
