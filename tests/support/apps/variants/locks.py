"""Guards of the lock, switched off one by one as the five designs lacked them."""

from collections.abc import Sequence

from slotlock.domain.booking.availability import Availability
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK, IDEMPOTENCY_LOCK_PREFIX, lock_keys
from slotlock.infrastructure.redis.locks import locks
from slotlock.infrastructure.redis.locks.leases import InProcessLease, Lease, RedisLease
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from slotlock.infrastructure.redis.slot_events import availability_message
from slotlock.services.commands import executor
from slotlock.services.commands.command import SlotCommand
from slotlock.services.container import Services
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

CONSTANT_DIGIT = "5"

original_acquire = Locks.acquire


class _ConstantSecrets:
    @staticmethod
    def token_hex(size: int) -> str:
        return CONSTANT_DIGIT * 2 * size


def use_one_lock_token() -> None:
    """The lock names its owner and not the acquisition (D2); there is one person in the test."""
    locks.secrets = _ConstantSecrets  # type: ignore[attr-defined,assignment]


async def _release_in_two_steps(self: Locks, lease: Lease, *states: Availability) -> None:
    if isinstance(lease, RedisLease):
        for name in lease.names:
            holder = await self.pipeline.send("GET", lock_keys(name).lock)
            if holder and holder.decode().startswith(lease.token):
                if name != HOLD_SWEEPER_LOCK:  # the sweeper's turn is no act
                    await pause_if_selected("between-steps")
                await self.pipeline.send("DEL", lock_keys(name).lock)
    for state in states:
        await self.pipeline.send("PUBLISH", *availability_message(state))


def release_in_two_steps() -> None:
    """GET, compare, DEL (D2)."""
    Locks.release = _release_in_two_steps  # type: ignore[method-assign]


async def _acquire_partially(self: Locks, *names: str, wait_s: float = 0.0) -> Lease | None:
    lease = await original_acquire(self, *names, wait_s=wait_s)
    if lease is None and len(names) > 1:
        for name in names:
            await original_acquire(self, name)
    return lease


def keep_partial_locks() -> None:
    """Of several locks those that are free are taken, and kept though others are not (D4)."""
    Locks.acquire = _acquire_partially  # type: ignore[method-assign]


async def _acquire_and_extend(self: Locks, *names: str, wait_s: float = 0.0) -> Lease | None:
    lease = await original_acquire(self, *names, wait_s=wait_s)
    if lease is None:
        for name in names:
            await self.pipeline.send("PEXPIRE", lock_keys(name).lock, LOCK_TTL_MS)
    return lease


def extend_lock_on_refusal() -> None:
    """Whoever is refused lets the holder's lock last longer, dead or alive (D4)."""
    Locks.acquire = _acquire_and_extend  # type: ignore[method-assign]


async def _acquire_except_keys(self: Locks, *names: str, wait_s: float = 0.0) -> Lease | None:
    if names[0].startswith(IDEMPOTENCY_LOCK_PREFIX):
        return InProcessLease((), 0)
    return await original_acquire(self, *names, wait_s=wait_s)


def skip_key_locks() -> None:
    """Sends of one key are not served one after the other, as when Redis loses their lock."""
    Locks.acquire = _acquire_except_keys  # type: ignore[method-assign]


original_serve_and_release = executor.serve_and_release


async def _serve_and_release_on_success(
    services: Services, lease: Lease, commands: Sequence[SlotCommand[object]]
) -> tuple[object, ...]:
    result = await executor.decide_and_commit(services, commands)
    if result.events:  # a refusal returns early
        await services.locks.release(lease, *result.events)
    return result.outcomes


def release_on_success_only() -> None:
    """A return and an error skip the unlock (D3, D4)."""
    replace_everywhere(original_serve_and_release, _serve_and_release_on_success)


GUARDS = {
    "token-per-acquisition": use_one_lock_token,
    "one-step-release": release_in_two_steps,
    "all-locks": keep_partial_locks,
    "no-extension-by-losers": extend_lock_on_refusal,
    "key-locks": skip_key_locks,
    "finally": release_on_success_only,
}
