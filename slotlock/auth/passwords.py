"""Passwords: Argon2id off the event loop, few at a time, in a line of bounded length."""

import asyncio
import os
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from passlib.context import CryptContext

Result = TypeVar("Result")

# OWASP's password storage cheat sheet, 2nd Argon2id choice: 19 MiB, 2 passes, 1 lane.
_CONTEXT = CryptContext(
    schemes=["argon2"],
    argon2__type="ID",
    argon2__memory_cost=19_456,
    argon2__time_cost=2,
    argon2__parallelism=1,
)

MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 128
# At about 30 ms each on a core this line is some 15 s long; beyond that nobody still waits.
MAX_QUEUED_HASHES = 1000


class HasherBusyError(Exception):
    """Too many passwords are in line already."""


@cache
def _create_dummy_hash() -> str:
    """Checking an unknown address against this costs what checking a known one costs."""
    made: str = _CONTEXT.hash(os.urandom(16).hex())
    return made


def _normalize(password: str) -> str:
    # One keyboard sends an accent by itself and another with its letter (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)


class PasswordHasher:
    """Hashes and checks passwords on a few threads; each takes its time by design."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(threads or os.cpu_count() or 1, "password")
        self._pending_count = 0
        self._dummy_hash = _create_dummy_hash()

    async def hash(self, password: str) -> str:
        """The password's hash. Errors: BusyError."""
        return await self._run(_CONTEXT.hash, _normalize(password))

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Whether the hash is this password's; for None the same work, and False."""
        hashed = password_hash or self._dummy_hash
        matched = await self._run(_CONTEXT.verify, _normalize(password), hashed)
        return matched and password_hash is not None

    async def _run(self, work: Callable[..., Result], *arguments: str) -> Result:
        if self._pending_count >= MAX_QUEUED_HASHES:
            raise HasherBusyError
        self._pending_count += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, work, *arguments)
        finally:
            self._pending_count -= 1

    def close(self) -> None:
        """End the threads; what is in line is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
