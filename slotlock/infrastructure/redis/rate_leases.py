"""Amounts of rate limits that a process charges in advance, so that most requests need no command.

A lease is charged before it is used, so that no count ever exceeds its limit. An operation can be
charged earlier than it is served, though. Within any window, a subject is served at most its limit
and one lease for each process, and at least its limit without the leases of other processes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from slotlock.infrastructure.bounded_cache import BoundedCache
from slotlock.infrastructure.redis.rate_limits import RateCharge, RateLimiter
from slotlock.infrastructure.tasks import ignore_unretrieved

# The lease of the subject that was charged least recently is dropped first.
MAX_LEASES, MAX_KEY_CHARACTERS = 50_000, 5_000_000


@dataclass(slots=True)
class _Lease:
    """The rest of the amount that was charged in advance to one limit of one subject."""

    rest: int = 0
    is_being_charged: bool = False
    # The monotonic time until which the subject gets no lease, as it is near its limit.
    suspended_until: float = 0.0


class RateLeases:
    """Charges limits by their leases, and by Redis when a lease is used up."""

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter
        self._leases: BoundedCache[_Lease] = BoundedCache(MAX_LEASES, MAX_KEY_CHARACTERS)

    def charge(self, charges: Sequence[RateCharge]) -> "asyncio.Future[int] | None":
        """Charge all limits or none.

        Return None if leases cover all charges; else the result of `RateLimiter.charge`, which is
        made whether or not it is awaited.
        """
        leases = [self._find_lease(charge) for charge in charges]
        for lease, charge in zip(leases, charges, strict=True):
            if lease.rest < charge[2]:
                return self._charge_redis(charges, leases)
        for lease, charge in zip(leases, charges, strict=True):
            lease.rest -= charge[2]
        return None

    def _find_lease(self, charge: RateCharge) -> _Lease:
        subject, limit, _ = charge
        key = f"{limit.name}:{subject}"
        lease = self._leases.get(key)
        if lease is None:
            lease = _Lease()
            self._leases.put(key, lease)
        return lease

    def _charge_redis(
        self, charges: Sequence[RateCharge], leases: Sequence[_Lease]
    ) -> "asyncio.Future[int]":
        now = monotonic()
        amounts = [
            limit.max_lease
            if lease.rest < amount and not lease.is_being_charged and lease.suspended_until <= now
            else 0
            for lease, (_, limit, amount) in zip(leases, charges, strict=True)
        ]
        if not any(amounts):
            return self._limiter.charge(charges)
        # Concurrent charges of the same subject must not take further leases.
        for lease, amount in zip(leases, amounts, strict=True):
            lease.is_being_charged = lease.is_being_charged or amount > 0
        task = asyncio.create_task(self._charge_with_leases(charges, leases, amounts))
        task.add_done_callback(ignore_unretrieved)
        return task

    async def _charge_with_leases(
        self, charges: Sequence[RateCharge], leases: Sequence[_Lease], amounts: Sequence[int]
    ) -> int:
        renewed = [(lease, amount) for lease, amount in zip(leases, amounts, strict=True) if amount]
        try:
            wait_ms = await self._limiter.charge(
                [
                    (subject, limit, amount + advance)
                    for (subject, limit, amount), advance in zip(charges, amounts, strict=True)
                ]
            )
        finally:
            for lease, _ in renewed:
                lease.is_being_charged = False
        if wait_ms == 0:
            for lease, amount in renewed:
                lease.rest += amount
            return 0
        # One of the limits has no room for a lease. It may have room for the operation.
        window_s = max(limit.window_s for _, limit, _ in charges)
        for lease, _ in renewed:
            lease.suspended_until = monotonic() + window_s
        return await self._limiter.charge(charges)
