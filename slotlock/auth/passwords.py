"""Hash passwords with Argon2id on a few threads, which serve addresses by round robin."""

import asyncio
import os
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from passlib.context import LazyCryptContext

from slotlock.infrastructure.fair_scheduler import FairScheduler, SchedulerFullError

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

# Hashes that may wait for each thread, in all and of one address. At about 30 ms each, a thread
# gets through them in 3 s, within the deadline of a request.
MAX_WAITING_PER_THREAD, MAX_WAITING_PER_THREAD_AND_ADDRESS = 100, 50


class HasherBusyError(Exception):
    """The queue of password hashes is full, or full of those of the same address."""


def _normalize(password: str) -> str:
    # Keyboards differ in whether they send accented letters composed (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)


class PasswordHasher:
    """Hashes and checks passwords on threads; each hash takes about 30 ms by design.

    A check signs a user in, so checks go before the hashes of new accounts. `client_address` is
    whom a hash keeps waiting; None stands for the server itself.
    """

    def __init__(self, threads: int | None = None) -> None:
        thread_count = threads or os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(thread_count, "password")
        self._scheduler = FairScheduler[str | bool](
            thread_count,
            max_waiting=thread_count * MAX_WAITING_PER_THREAD,
            max_waiting_per_client=thread_count * MAX_WAITING_PER_THREAD_AND_ADDRESS,
        )

    async def hash(
        self, password: str, client_address: str | None = None, *, is_urgent: bool = False
    ) -> str:
        """Return the hash of the password. Raises: HasherBusyError."""
        normalized = _normalize(password)
        return str(await self._run(client_address, is_urgent, _CONTEXT.hash, normalized))

    async def matches(
        self, password: str, password_hash: str | None, client_address: str | None = None
    ) -> bool:
        """Return whether the hash is of this password; None costs the same and never matches.

        Raises: HasherBusyError.
        """
        expected_hash, normalized = password_hash or _UNKNOWN_HASH, _normalize(password)
        matched = await self._run(client_address, True, _CONTEXT.verify, normalized, expected_hash)
        return bool(matched) and password_hash is not None

    async def _run(
        self,
        client_address: str | None,
        is_urgent: bool,
        function: Callable[..., str | bool],
        *arguments: str,
    ) -> str | bool:
        loop = asyncio.get_running_loop()
        try:
            return await self._scheduler.run(
                client_address,
                lambda: loop.run_in_executor(self._threads, function, *arguments),
                is_urgent=is_urgent,
            )
        except SchedulerFullError:
            raise HasherBusyError from None

    def close(self) -> None:
        """Stop the threads and drop the queue."""
        self._threads.shutdown(wait=False, cancel_futures=True)
