"""Hash passwords with Argon2id on a few threads, which serve addresses by round robin."""

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from passlib.context import LazyCryptContext

from slotlock.infrastructure.available_cpus import available_cpus
from slotlock.infrastructure.fair_scheduler import FairScheduler, Priority

# OWASP Password Storage Cheat Sheet, second Argon2id choice: 19 MiB, 2 iterations, 1 thread.
# Lazy, as most commands hash no password.
_CONTEXT = LazyCryptContext(
    schemes=["argon2"],
    argon2__type="ID",
    argon2__memory_cost=19_456,
    argon2__time_cost=2,
    argon2__parallelism=1,
)
# A check of an unknown account takes as long as that of a known one. The password was random.
_UNKNOWN_HASH = (
    "$argon2id$v=19$m=19456,t=2,p=1"
    "$E4IQQojRes/5vzcmJMS4tw$6AXiuP59GoFyIVumH5zxAQX2I5kVP532EQMPJBJbtf4"
)

# How long a password waits for a thread. Clients, browsers and proxies wait for a minute.
MAX_WAIT_S = 30.0
EXPECTED_HASH_S = 0.03
# While one password is hashed, the accounts of others are read and their sessions written, in some
# five round trips.
PERMITS_PER_THREAD = 4

Result = TypeVar("Result")


def _normalize(password: str) -> str:
    # Keyboards differ in whether they send accented letters composed (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)


class PasswordHasher:
    """Hashes and checks passwords on threads; each hash takes about 30 ms by design.

    By default, there is a thread for each CPU that the process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        thread_count = threads or available_cpus()
        self._threads = ThreadPoolExecutor(thread_count, "password")
        self._scheduler = FairScheduler[None](
            PERMITS_PER_THREAD * thread_count,
            max_wait_s=MAX_WAIT_S,
            expected_job_s=PERMITS_PER_THREAD * EXPECTED_HASH_S,
        )
        # The accounts for which a check waits or runs, each with the address of its client.
        self._accounts: set[tuple[str, str | None]] = set()

    @asynccontextmanager
    async def permit(
        self, client_address: str | None, account: str | None = None, *, is_known: bool = False
    ) -> AsyncIterator[None]:
        """Wait until a client may have passwords hashed, for the time of the context.

        Everything that a password needs of MongoDB belongs into the context, so that a crowd waits
        here and not there. The time of the wait does not count for the deadline of the request.

        `account` is its id or a name that the client sent, whether or not it exists; None for a new
        one. Of each address, one permit for an account at a time is urgent: more so if the account
        `is_known` there, or if a session or a token names it.

        Raises:
            SchedulerFullError: too many passwords wait.
        """
        key = account or "", client_address
        priority = Priority.HIGH if is_known else Priority.NORMAL
        if account is None or key in self._accounts:
            async with self._scheduler.permit(client_address, priority=Priority.LOW):
                yield
            return
        self._accounts.add(key)
        try:
            async with self._scheduler.permit(client_address, priority=priority):
                yield
        finally:
            self._accounts.discard(key)

    async def hash(self, password: str) -> str:
        """Return the hash of a password."""
        return await self._run(_CONTEXT.hash, _normalize(password))

    async def matches(self, password: str, password_hash: str | None) -> bool:
        """Return whether the hash is of this password; None costs the same and never matches."""
        expected_hash = password_hash or _UNKNOWN_HASH
        matched = await self._run(_CONTEXT.verify, _normalize(password), expected_hash)
        return matched and password_hash is not None

    async def _run(self, function: Callable[..., Result], *arguments: str) -> Result:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)

    def close(self) -> None:
        """Stop the threads and drop the queue."""
        self._threads.shutdown(wait=False, cancel_futures=True)
