"""Hash passwords with Argon2id on a few threads, which serve addresses by round robin."""

import asyncio
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from passlib.context import LazyCryptContext

from slotlock.infrastructure.available_cpus import available_cpus
from slotlock.infrastructure.fair_scheduler import FairScheduler, Priority
from slotlock.infrastructure.request_deadline import untimed

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


def _normalize(password: str) -> str:
    # Keyboards differ in whether they send accented letters composed (NIST SP 800-63B, 3.1.1.2).
    return unicodedata.normalize("NFKC", password)


class PasswordHasher:
    """Hashes and checks passwords on threads; each hash takes about 30 ms by design.

    `client_address` is whom a hash keeps waiting; None stands for the server itself. The time that
    a password waits does not count for the deadline of its request. By default, there is a thread
    for each CPU that the process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        thread_count = threads or available_cpus()
        self._threads = ThreadPoolExecutor(thread_count, "password")
        self._scheduler = FairScheduler[str | bool](
            thread_count, max_wait_s=MAX_WAIT_S, expected_job_s=EXPECTED_HASH_S
        )
        # The accounts for which a check waits or runs, each with the address of its client.
        self._accounts: set[tuple[str, str | None]] = set()

    async def hash(
        self, password: str, client_address: str | None = None, *, is_known: bool = False
    ) -> str:
        """Return the hash of the password of a new account, or of one that `is_known`.

        Raises:
            SchedulerFullError: too many passwords wait.
        """
        priority = Priority.HIGH if is_known else Priority.LOW
        normalized = _normalize(password)
        return str(await self._run(client_address, priority, _CONTEXT.hash, normalized))

    async def matches(
        self,
        password: str,
        password_hash: str | None,
        client_address: str | None = None,
        *,
        account: str = "",
        is_known: bool = False,
    ) -> bool:
        """Return whether the hash is of this password; None costs the same and never matches.

        `account` is its id or a name that the client sent, whether or not it exists. Of each
        address, one check of an account at a time is urgent: more so if the account `is_known`
        there, or its user is signed in.

        Raises:
            SchedulerFullError: too many passwords wait.
        """
        expected_hash, normalized = password_hash or _UNKNOWN_HASH, _normalize(password)
        with self._priority(account, client_address, is_known=is_known) as priority:
            matched = await self._run(
                client_address, priority, _CONTEXT.verify, normalized, expected_hash
            )
        return bool(matched) and password_hash is not None

    @contextmanager
    def _priority(
        self, account: str, client_address: str | None, *, is_known: bool
    ) -> Iterator[Priority]:
        key = account, client_address
        if key in self._accounts:
            yield Priority.LOW
            return
        self._accounts.add(key)
        try:
            yield Priority.HIGH if is_known else Priority.NORMAL
        finally:
            self._accounts.discard(key)

    async def _run(
        self,
        client_address: str | None,
        priority: Priority,
        function: Callable[..., str | bool],
        *arguments: str,
    ) -> str | bool:
        loop = asyncio.get_running_loop()
        with untimed():
            return await self._scheduler.run(
                client_address,
                lambda: loop.run_in_executor(self._threads, function, *arguments),
                priority=priority,
            )

    def close(self) -> None:
        """Stop the threads and drop the queue."""
        self._threads.shutdown(wait=False, cancel_futures=True)
