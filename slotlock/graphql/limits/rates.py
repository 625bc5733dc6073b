"""How much may be asked in a minute, by a person and by an address.

An address may ask as much as many people, since a whole school can be behind one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from slotlock.domain.users.user import UserId
from slotlock.graphql.core.errors import RateLimitedError
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.local_rate_limits import InProcessRateLimiter
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit, RateLimiter

# A minute, of one person. Subscriptions begin again, ten a socket, when a connection comes back.
MAX_SIGN_INS_PER_MINUTE = 30  # each hashes a password; and as many acts that end sessions
MAX_SIGN_IN_ATTEMPTS_PER_MINUTE = (
    600  # to sign in, whether or not a password is hashed; and as many tokens
)
MAX_SUBSCRIPTIONS_PER_MINUTE = 200
# Kilobytes of documents that were not seen lately. A client has few; each costs up to 10 ms a kB.
MAX_DOCUMENT_KB_PER_MINUTE, MAX_DOCUMENT_KB_PER_ADDRESS = 300, 6_000
# Whatever is in them: some are there at once, others keep a process busy for seconds.
MAX_FILES_PER_MINUTE = 60
# What is counted without Redis: people do these who are not signed in, or they cost a hash.
ALWAYS_COUNTED_KINDS = frozenset(
    {
        OperationKind.SIGN_IN,
        OperationKind.SIGN_IN_ATTEMPT,
        OperationKind.REDEEM_TOKEN,
        OperationKind.SIGN_OUT,
    }
)

UNCHECKED_RATE_LIMITS = Counter(
    "slotlock_rate_limit_unchecked_total", "Times that a rate was not looked at: Redis was away"
)


@dataclass(frozen=True, slots=True)
class PendingCharge:
    """What is wanted for one operation, and the answer of Redis."""

    charges: Sequence[RateCharge]
    wait_ms: asyncio.Future[int]


class OperationRateLimits:
    """The limits of this deployment; without counts there are none."""

    def __init__(
        self, limiter: RateLimiter | None, max_reads: int, max_writes: int, users_per_address: int
    ) -> None:
        self._limiter = limiter
        self._local_limiter = InProcessRateLimiter()
        most: dict[OperationKind, int] = {
            OperationKind.READ: max_reads,
            OperationKind.WRITE: max_writes,
            OperationKind.SUBSCRIBE: MAX_SUBSCRIPTIONS_PER_MINUTE,
            **dict.fromkeys(
                (OperationKind.SIGN_IN, OperationKind.SIGN_OUT), MAX_SIGN_INS_PER_MINUTE
            ),
            **dict.fromkeys(
                (OperationKind.SIGN_IN_ATTEMPT, OperationKind.REDEEM_TOKEN),
                MAX_SIGN_IN_ATTEMPTS_PER_MINUTE,
            ),
            OperationKind.DOCUMENT: MAX_DOCUMENT_KB_PER_MINUTE,
            OperationKind.FILE: MAX_FILES_PER_MINUTE,
        }
        # A thief elsewhere must not keep a person from ending the session that was stolen.
        self._user_limits: dict[OperationKind, RateLimit] = {
            kind: RateLimit(kind.value, n)
            for kind, n in most.items()
            if kind is not OperationKind.SIGN_OUT
        }
        # Files are organisers': nobody else can use up what their address may.
        self._address_limits: dict[OperationKind, RateLimit] = {
            kind: RateLimit(kind.value, n * users_per_address)
            for kind, n in most.items()
            if kind is not OperationKind.FILE
        }
        # Reading them is the one thing that a person can make dear: not so often as for many.
        self._address_limits[OperationKind.DOCUMENT] = RateLimit(
            OperationKind.DOCUMENT.value, MAX_DOCUMENT_KB_PER_ADDRESS
        )

    def charge(
        self, costs: Mapping[OperationKind, int], user_id: UserId | None, address: str | None
    ) -> PendingCharge | None:
        """Ask whether there is room for an operation; it is under way when this returns."""
        if self._limiter is None:
            return None
        wants = self._charges(costs, user_id, address)
        return PendingCharge(wants, self._limiter.charge(wants)) if wants else None

    def _charges(
        self, costs: Mapping[OperationKind, int], user_id: UserId | None, address: str | None
    ) -> Sequence[RateCharge]:
        return [
            (f"{what}:{who}", limits[kind], weight)
            for what, who, limits in (
                ("user", user_id, self._user_limits),
                ("address", address, self._address_limits),
            )
            if who is not None
            for kind, weight in costs.items()
            if kind in limits
        ]

    async def refund(
        self, kind: OperationKind, user_id: UserId | None, address: str | None
    ) -> None:
        """Count one less: it was refused before it cost what others of its kind do."""
        wants = self._charges({kind: 1}, user_id, address)
        if self._limiter is None or not wants:
            return
        try:
            await self._limiter.charge(wants, ChargeMode.REFUND)
        except RedisUnavailableError:
            self._local_limiter.charge(wants, ChargeMode.REFUND)

    async def wait(self, pending: PendingCharge | None) -> None:
        """Wait until it is known that there is room. Errors: RateLimitedError."""
        if pending is not None and (wait_ms := await self._retry_after_ms(pending)):
            raise RateLimitedError(wait_ms)

    async def _retry_after_ms(self, pending: PendingCharge) -> int:
        """When there is room, in ms from now; 0: there is. While Redis is away there is.

        Except for sign-ins and their like, which this process then counts alone.
        """
        try:
            return await pending.wait_ms
        except RedisUnavailableError:
            always = [want for want in pending.charges if want[1].name in ALWAYS_COUNTED_KINDS]
            if len(always) < len(pending.charges):
                UNCHECKED_RATE_LIMITS.inc()
            return self._local_limiter.charge(always)
