"""Guards of the lock, and pause points before its release."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK, IDEMPOTENCY_LOCK_PREFIX, lock_keys
from slotlock.infrastructure.redis.locks import (
    lock_leases,
    locks,
    redis_locks,
    waiters,
)
from slotlock.infrastructure.redis.locks.lock_leases import (
    InProcessLockLease,
    LockLease,
    RedisLockLease,
)
from slotlock.infrastructure.redis.locks.lock_scripts import ACQUIRE
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from slotlock.infrastructure.redis.slot_events import availability_message
from slotlock.services import caller_queue
from slotlock.services.caller_queue import BatchServer, LockedBatch, Served
from slotlock.services.caller_queues import CallerQueues, Command
from slotlock.services.commands import commit
from slotlock.services.commands.group_commit import CommandBatchServer
from slotlock.services.container import Services
from slotlock.services.slot_command import SlotCommand
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

CONSTANT_DIGIT = "5"
# No waiter receives the lock.
RELEASE_WITHOUT_OWNER = "redis.call('del', KEYS[1]) return {false}"
RENEW_NOTHING = "return 1"
# The guard's text in the scripts of the lock, and the text that replaces it.
SCRIPT_GUARDS = {
    "fairness": ("zpopmin", "zpopmax"),
    "barging": ("not lock and redis.call('exists', queue_key) == 1", "false"),
    "heartbeat": ("heartbeat and now_us() - heartbeat <", "true or 0 <"),
    "ttl": (", 'PX', ttl_ms", ""),
}

original_acquire, original_acquire_each = Locks.acquire, Locks.acquire_each
original_submit = CallerQueues.submit


def scripts_without(guard: str) -> Iterator[tuple[ModuleType, str, str]]:
    """Yield the module, the name and the text of each lock script without this guard."""
    guard_text, replacement = SCRIPT_GUARDS[guard]
    assert guard_text in ACQUIRE
    for module, name in (
        (redis_locks, "ACQUIRE"),
        (redis_locks, "RELEASE"),
        (waiters, "KEEP_ALIVE"),
    ):
        yield module, name, getattr(module, name).replace(guard_text, replacement)


def remove_script_guard(guard: str) -> None:
    """Remove a guard from every script of the lock."""
    for module, name, script in scripts_without(guard):
        setattr(module, name, script)


async def _acquire_always(self: Locks, *names: str, **options: Any) -> LockLease:
    return RedisLockLease(names, "no owner", 0, math.inf)


async def _serve_at_once(
    self: CallerQueues[Command],
    slot_id: SlotId,
    command: Command,
    wait_s: float,
    server: BatchServer[Command],
) -> CommandResult[object] | None:
    if wait_s > 0:
        return await original_submit(self, slot_id, command, wait_s, server)
    lease = RedisLockLease((slot_id,), "no owner", 0, math.inf)
    (result,) = await server.serve(LockedBatch(slot_id, lease, [command]))
    return result


def skip_lock() -> None:
    """Grant every lock without asking Redis, and share none among the callers of one process."""
    Locks.acquire = _acquire_always  # type: ignore[method-assign]
    CallerQueues.submit = _serve_at_once  # type: ignore[method-assign]


def release_without_owner_check() -> None:
    """Release with a plain DEL (D1)."""
    redis_locks.RELEASE = RELEASE_WITHOUT_OWNER  # type: ignore[attr-defined]


def skip_renewal() -> None:
    """Let every lease expire at the end of its first time to live."""
    lock_leases.RENEW = RENEW_NOTHING  # type: ignore[attr-defined]


def _message_without_subscribers(state: Availability) -> tuple[str, bytes]:
    return "no:subscribers", b""


def skip_publishing() -> None:
    """Publish availability to a channel without subscribers."""
    locks.availability_message = _message_without_subscribers  # type: ignore[attr-defined]


class _ConstantSecrets:
    @staticmethod
    def token_hex(size: int) -> str:
        return CONSTANT_DIGIT * 2 * size


def use_one_lock_token() -> None:
    """Use one lock token for every acquisition of a user (D2)."""
    redis_locks.secrets = _ConstantSecrets  # type: ignore[attr-defined,assignment]


async def _release_in_two_steps(
    self: Locks, releases: Sequence[tuple[LockLease, Sequence[Availability]]]
) -> None:
    for lease, states in releases:
        if isinstance(lease, RedisLockLease):
            for name in lease.names:
                holder = await self.pipeline.send("GET", lock_keys(name).lock)
                if holder and holder.decode().startswith(lease.token):
                    if name != HOLD_SWEEPER_LOCK:
                        await pause_if_selected("between-steps")
                    await self.pipeline.send("DEL", lock_keys(name).lock)
        for state in states:
            await self.pipeline.send("PUBLISH", *availability_message(state))


def release_in_two_steps() -> None:
    """Release with GET, a comparison and DEL (D2)."""
    Locks.release_each = _release_in_two_steps  # type: ignore[method-assign]


async def _acquire_partially(self: Locks, *names: str, **options: Any) -> LockLease | None:
    lease = await original_acquire(self, *names, **options)
    if lease is None and len(names) > 1:
        for name in names:
            await original_acquire(self, name)
    return lease


def hold_partial_locks() -> None:
    """Acquire the free ones of several locks and hold them although others are taken (D4)."""
    Locks.acquire = _acquire_partially  # type: ignore[method-assign]


async def _acquire_and_extend(self: Locks, *names: str, **options: Any) -> LockLease | None:
    lease = await original_acquire(self, *names, **options)
    if lease is None:
        for name in names:
            await self.pipeline.send("PEXPIRE", lock_keys(name).lock, LOCK_TTL_MS)
    return lease


async def _acquire_each_and_extend(self: Locks, names: Sequence[str]) -> list[LockLease | None]:
    return [await _acquire_and_extend(self, name) for name in names]


def extend_lock_on_refusal() -> None:
    """Extend the lock of its holder whenever another acquisition fails (D4)."""
    Locks.acquire = _acquire_and_extend  # type: ignore[method-assign]
    Locks.acquire_each = _acquire_each_and_extend  # type: ignore[method-assign]


async def _acquire_except_keys(self: Locks, *names: str, **options: Any) -> LockLease | None:
    if names[0].startswith(IDEMPOTENCY_LOCK_PREFIX):
        return InProcessLockLease((), 0)
    return await original_acquire(self, *names, **options)


def take_all_callers() -> None:
    """Let a batch take all callers of its process, and not end where another one came first."""
    caller_queue.SIMULTANEOUS_S = math.inf
    caller_queue.MIN_BURST_QUOTA = caller_queue.MAX_BATCH_CALLERS


async def _acquire_each_except_keys(self: Locks, names: Sequence[str]) -> list[LockLease | None]:
    if names[0].startswith(IDEMPOTENCY_LOCK_PREFIX):
        return [InProcessLockLease((), 0) for _ in names]
    return await original_acquire_each(self, names)


def skip_key_locks() -> None:
    """Process requests with the same idempotency key concurrently, as after a loss of Redis."""
    Locks.acquire = _acquire_except_keys  # type: ignore[method-assign]
    Locks.acquire_each = _acquire_each_except_keys  # type: ignore[method-assign]


original_serve_and_release = commit.serve_and_release


async def _serve_and_release_on_success(
    services: Services, lease: LockLease, commands: Sequence[SlotCommand[object]]
) -> tuple[CommandResult[object], ...]:
    result = await commit.decide_and_commit(services, commands)
    if result.events:  # a refusal returns early
        await services.locks.release(lease, *result.events)
    return result.results


async def _serve_group_alone(
    self: CommandBatchServer, batches: Sequence[LockedBatch[SlotCommand[object]]]
) -> list[Served]:
    return [partial(self.serve, batch) for batch in batches]


def serve_groups_alone() -> None:
    """Let no batches share a read and a write."""
    CommandBatchServer.serve_group = _serve_group_alone  # type: ignore[method-assign]


def release_on_success_only() -> None:
    """Skip the release after a refusal and after an error (D3, D4)."""
    replace_everywhere(original_serve_and_release, _serve_and_release_on_success)
    serve_groups_alone()


def _pause_before_release() -> None:
    release_each = Locks.release_each

    async def release_after_pause(
        self: Locks, releases: Sequence[tuple[LockLease, Sequence[Availability]]]
    ) -> None:
        if any(HOLD_SWEEPER_LOCK not in lease.names for lease, _ in releases):
            await pause_if_selected("release")
        await release_each(self, releases)

    Locks.release_each = release_after_pause  # type: ignore[method-assign]


GUARDS: dict[str, Callable[[], None]] = {
    **{guard: partial(remove_script_guard, guard) for guard in SCRIPT_GUARDS},
    "lock": skip_lock,
    "lock-owner": release_without_owner_check,
    "renewal": skip_renewal,
    "publishing": skip_publishing,
    "token-per-acquisition": use_one_lock_token,
    "one-step-release": release_in_two_steps,
    "all-locks": hold_partial_locks,
    "no-extension-by-losers": extend_lock_on_refusal,
    "key-locks": skip_key_locks,
    "order-between-processes": take_all_callers,
    "finally": release_on_success_only,
}
PAUSES: dict[str, Callable[[], None]] = {"release": _pause_before_release}
