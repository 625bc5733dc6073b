"""The right to be served at slots: kept alive while its holder lives, who is told of its loss."""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.scripts import GRANT_TTL_MS, RENEW


@dataclass(slots=True, eq=False)
class Lease:
    """The right to be served at these slots until it is released or lost.

    `token` is None for a lease that only this process knows, given while Redis is away. `fence` is
    more than that of any lease on one of these slots before. `lost` is set when the lease is known
    to have run out, or to be another's.
    """

    slot_ids: tuple[str, ...]
    owner_token: str | None
    fencing_token: int
    lost: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _RenewedLease:
    timer: asyncio.TimerHandle
    valid_until: float  # of the loop's time


class LeaseRenewer:
    """The leases held by this process, by token."""

    def __init__(self, pipeline: AutoPipeline, ttl_ms: int) -> None:
        self._pipeline = pipeline
        self._ttl_ms = ttl_ms
        self._leases: dict[str, _RenewedLease] = {}

    def __contains__(self, token: str) -> bool:
        return token in self._leases

    def start_renewing(self, lease: Lease, *, was_granted: bool) -> None:
        """Renew the lease from now on, with whatever slots it has or will have.

        What was handed to a waiter lasts but shortly, and is renewed at once, unawaited.
        """
        token, loop = lease.owner_token or "", asyncio.get_running_loop()
        sure_until = loop.time() + (GRANT_TTL_MS if was_granted else self._ttl_ms) / 1000
        if token not in self._leases:
            timer = loop.call_later(self._ttl_ms / 3000, self.renew, lease)
            self._leases[token] = _RenewedLease(timer, sure_until)
        if was_granted:
            self.renew(lease)

    def renew(self, lease: Lease) -> None:
        """Renew now, unawaited."""
        kept = self._leases.get(lease.owner_token or "")
        if kept is None:  # lost already
            return
        kept.timer.cancel()
        loop = asyncio.get_running_loop()
        until = loop.time() + self._ttl_ms / 1000
        for slot_id in lease.slot_ids:
            answer = self._pipeline.send(
                "EVAL", RENEW, 1, lock_keys(slot_id)[0], lease.owner_token, self._ttl_ms
            )
            answer.add_done_callback(partial(self._on_renewed, lease, until))
        kept.timer = loop.call_later(self._ttl_ms / 3000, self.renew, lease)

    def _on_renewed(self, lease: Lease, valid_until: float, answer: asyncio.Future[Any]) -> None:
        kept = self._leases.get(lease.owner_token or "")
        if kept is None:  # released meanwhile
            return
        if answer.exception() is not None:
            # Redis is away, and may keep the lock yet; but not for longer than it was told to.
            lost = asyncio.get_running_loop().time() > kept.valid_until
        else:
            lost = not answer.result()
            kept.valid_until = valid_until
        if lost:
            self.stop_renewing(lease)
            lease.lost.set()

    def stop_renewing(self, lease: Lease) -> None:
        """Renew it no more."""
        kept = self._leases.pop(lease.owner_token or "", None)
        if kept is not None:
            kept.timer.cancel()

    def stop(self) -> None:
        """Renew nothing any more: what is held runs out."""
        for kept in self._leases.values():
            kept.timer.cancel()
        self._leases.clear()
