"""Rate limits: how many operations of each kind a user and an address may send in a minute.

A school can share one address, so an address has the limits of many users.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import thread_time

from prometheus_client import Counter

from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.rate_leases import RateLeases
from slotlock.infrastructure.redis.rate_limits import (
    ChargeMode,
    InProcessRateLimiter,
    RateCharge,
    RateLimit,
    RateLimiter,
)

# Limits of one user in a minute.
# Every sign-in hashes a password. The same number bounds mutations that end sessions.
MAX_SIGN_INS_PER_MINUTE = 30
# Attempts count even if no password is hashed. The same number bounds redeemed tokens,
# and requests for a new password, most of which lead to no mail.
MAX_SIGN_IN_ATTEMPTS_PER_MINUTE = 600
# After a lost connection a client subscribes again, up to ten times on each socket.
MAX_SUBSCRIPTIONS_PER_MINUTE = 200
# Milliseconds of CPU time for documents that are not cached. Clients have few, which cost some ms
# each. A process counts its own time, of which new documents get at most 15,000 ms a minute: an
# address may use all of that while no other one waits.
MAX_DOCUMENT_MS_PER_MINUTE = 3_000
# What a document is charged before it is parsed; the rest is refunded. More than any costs.
DOCUMENT_DEPOSIT_MS = 300
# Small files are quick; large ones keep a process busy for seconds.
MAX_FILES_PER_MINUTE = 60
# A camera at the door sends one after the other, with a pause of 700 ms. One takes some 10 ms.
MAX_FRAMES_PER_MINUTE = 120
# These are counted without Redis, too: anonymous clients send them, or they cost a password hash.
ALWAYS_COUNTED_KINDS = frozenset(
    {
        OperationKind.SIGN_IN,
        OperationKind.SIGN_IN_ATTEMPT,
        OperationKind.REDEEM_TOKEN,
        OperationKind.REQUEST_RESET,
        OperationKind.SIGN_OUT,
    }
)

# A process charges these in advance, a hundredth of a limit at once. Most requests are of these
# kinds. The others are expensive, and have small limits.
LEASED_KINDS = frozenset({OperationKind.READ, OperationKind.WRITE})
LEASES_PER_LIMIT = 100

UNCHECKED_RATE_LIMITS = Counter(
    "slotlock_rate_limit_unchecked_total",
    "Operations whose rate was not checked because Redis was unavailable",
)


def _rate_limit(kind: OperationKind, maximum: int) -> RateLimit:
    max_lease = maximum // LEASES_PER_LIMIT if kind in LEASED_KINDS else 0
    return RateLimit(kind.value, maximum, max_lease=max_lease)


@value_object
class PendingCharge:
    """The charges of one operation, and how long it has to wait (ms; 0 if Redis accepts it)."""

    charges: Sequence[RateCharge]
    wait_ms: asyncio.Future[int]


class OperationRateLimits:
    """The rate limits of this deployment; without a limiter there are none."""

    def __init__(
        self, limiter: RateLimiter | None, max_reads: int, max_writes: int, users_per_address: int
    ) -> None:
        self._limiter = limiter
        self._leases = RateLeases(limiter) if limiter else None
        # Whether operations are charged.
        self.is_on = limiter is not None
        self._local_limiter = InProcessRateLimiter()
        per_minute: dict[OperationKind, int] = {
            OperationKind.READ: max_reads,
            OperationKind.WRITE: max_writes,
            OperationKind.SUBSCRIBE: MAX_SUBSCRIPTIONS_PER_MINUTE,
            OperationKind.SIGN_IN: MAX_SIGN_INS_PER_MINUTE,
            OperationKind.SIGN_OUT: MAX_SIGN_INS_PER_MINUTE,
            OperationKind.SIGN_IN_ATTEMPT: MAX_SIGN_IN_ATTEMPTS_PER_MINUTE,
            OperationKind.REDEEM_TOKEN: MAX_SIGN_IN_ATTEMPTS_PER_MINUTE,
            OperationKind.REQUEST_RESET: MAX_SIGN_IN_ATTEMPTS_PER_MINUTE,
            OperationKind.DOCUMENT: MAX_DOCUMENT_MS_PER_MINUTE,
            OperationKind.FILE: MAX_FILES_PER_MINUTE,
            OperationKind.FRAME: MAX_FRAMES_PER_MINUTE,
        }
        # A thief of a token must not keep its user from ending the stolen session.
        self._user_limits: dict[OperationKind, RateLimit] = {
            kind: _rate_limit(kind, maximum)
            for kind, maximum in per_minute.items()
            if kind is not OperationKind.SIGN_OUT
        }
        # Only organizers send files and frames: others must not use up the limit of a shared
        # address. New documents of addresses are read by round robin.
        self._address_limits: dict[OperationKind, RateLimit] = {
            kind: _rate_limit(kind, maximum * users_per_address)
            for kind, maximum in per_minute.items()
            if kind not in (OperationKind.FILE, OperationKind.FRAME, OperationKind.DOCUMENT)
        }

    def charge(
        self, costs: Mapping[OperationKind, int], user_id: UserId | None, address: str | None
    ) -> PendingCharge | None:
        """Start to charge an operation to its user and address. `wait` raises the refusal, if any.

        Return None if it can go on at once.
        """
        if self._leases is None:
            return None
        charges = self._charges(costs, user_id, address)
        wait_ms = self._leases.charge(charges)
        return None if wait_ms is None else PendingCharge(charges, wait_ms)

    def _charges(
        self, costs: Mapping[OperationKind, int], user_id: UserId | None, address: str | None
    ) -> Sequence[RateCharge]:
        charges: list[RateCharge] = []
        for kind, count in costs.items():
            user_limit, address_limit = self._user_limits.get(kind), self._address_limits.get(kind)
            if user_id is not None and user_limit is not None:
                charges.append((f"user:{user_id}", user_limit, count))
            if address is not None and address_limit is not None:
                charges.append((f"address:{address}", address_limit, count))
        return charges

    def check_document(self, user_id: UserId | None) -> None:
        """Check that a user may send a new document now.

        Raises:
            RateLimitedError: the user has reached the limit.
        """
        if self._limiter is not None:
            self._charge_deposit(user_id, ChargeMode.PEEK)

    def _charge_deposit(self, user_id: UserId | None, mode: ChargeMode) -> None:
        deposit = self._charges({OperationKind.DOCUMENT: DOCUMENT_DEPOSIT_MS}, user_id, None)
        if wait_ms := self._local_limiter.charge(deposit, mode):
            raise RateLimitedError(wait_ms)

    @contextmanager
    def document_charge(self, user_id: UserId | None) -> Iterator[None]:
        """Charge the CPU time of the block, which parses a document without waiting.

        Raises:
            RateLimitedError: the user has reached the limit.
        """
        if self._limiter is None:
            yield
            return
        self._charge_deposit(user_id, ChargeMode.CHARGE)
        started_at = thread_time()
        try:
            yield
        finally:
            cost_ms = math.ceil((thread_time() - started_at) * 1000)
            rest = {OperationKind.DOCUMENT: max(DOCUMENT_DEPOSIT_MS - cost_ms, 0)}
            self._local_limiter.charge(self._charges(rest, user_id, None), ChargeMode.REFUND)

    async def refund(
        self, kind: OperationKind, user_id: UserId | None, address: str | None
    ) -> None:
        """Refund one operation that was rejected before it cost what its kind usually costs."""
        charges = self._charges({kind: 1}, user_id, address)
        if self._limiter is None or not charges:
            return
        try:
            await self._limiter.charge(charges, ChargeMode.REFUND)
        except RedisUnavailableError:
            self._local_limiter.charge(charges, ChargeMode.REFUND)

    async def wait(self, pending: PendingCharge | None) -> None:
        """Wait for the verdict on a charge.

        Raises:
            RateLimitedError: the user or the address has reached a limit.
        """
        if pending is not None and (wait_ms := await self._wait_ms(pending)):
            raise RateLimitedError(wait_ms)

    async def _wait_ms(self, pending: PendingCharge) -> int:
        """Return for how many ms the operation has to wait; 0 accepts it.

        While Redis is unavailable, this process counts only ALWAYS_COUNTED_KINDS, by itself.
        """
        try:
            return await pending.wait_ms
        except RedisUnavailableError:
            charges = [each for each in pending.charges if each[1].name in ALWAYS_COUNTED_KINDS]
            if len(charges) < len(pending.charges):
                UNCHECKED_RATE_LIMITS.inc()
            return self._local_limiter.charge(charges)
