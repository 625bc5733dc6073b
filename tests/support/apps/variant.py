"""The app with a guard switched off, or stopped at a point of an act: `python -m tests.support...`.

Negative controls need an app that lacks a guard, and races need one that waits where a test wants
it to. Both are made here, from outside: the app itself knows nothing of it.

    VARIANT_OFF     guards to switch off, of: version lock owner ttl announcements fairness
                    barging heartbeat renewal team-version, and those in tests/support/variants
    VARIANT_PAUSE   where the first act that gets there waits, of: commit release record
                    transaction between spread plan, and those of the queue
    VARIANT_STAGE   the name under which the test follows and frees it
    VARIANT_COMMAND what it is started as: serve, unless it says worker
"""

import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from bson import ObjectId
from redis.asyncio import Redis

from slotlock.cli.main import main
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import Slot
from slotlock.domain.teams.team import TeamVersion
from slotlock.infrastructure.mongo import teams
from slotlock.infrastructure.mongo.slots import documents
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, CommitResult
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK
from slotlock.infrastructure.redis.locks import leases, locks, waiters
from slotlock.infrastructure.redis.locks.leases import Lease, RedisLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.locks.scripts import ACQUIRE
from tests.support.apps.variants import (
    admission_batches,
    admission_queue,
    admission_worker,
    booking_rules,
    campaigns,
    live,
    redis_counters,
    series,
    sessions,
    slot_writer,
    websockets,
)
from tests.support.apps.variants.locks import GUARDS

# Each of them by its name, and how it is switched off.
SWITCHES = {
    **GUARDS,
    **slot_writer.GUARDS,
    **slot_writer.MISHAPS,
    **redis_counters.GUARDS,
    **booking_rules.GUARDS,
    **campaigns.GUARDS,
    **series.GUARDS,
    **live.GUARDS,
    **sessions.GUARDS,
    **websockets.GUARDS,
    **websockets.MISHAPS,
    **admission_queue.GUARDS,
    **admission_worker.GUARDS,
    **admission_worker.MISHAPS,
    **admission_batches.GUARDS,
    **admission_batches.MISHAPS,
}
# Points that are reached in a part of the app of their own.
PAUSE_INSTALLERS = {
    **dict.fromkeys(("record", "transaction", "between-steps"), slot_writer.install_pauses),
    **dict.fromkeys(admission_worker.PAUSE_POINTS, admission_worker.install_pauses),
    "propagate": campaigns.install_pauses,
    "plan": series.install_pauses,
    **dict.fromkeys(("batch", "batches"), admission_queue.install_pauses),
}


def _id_only_filter(before: Slot) -> dict[str, Any]:
    return {"_id": ObjectId(before.id)}


def _id_only_team_filter(team_version: TeamVersion) -> dict[str, Any]:
    return {"_id": ObjectId(team_version.team_id)}


async def _acquire_always(self: Locks, *names: str, wait_s: float = 0.0) -> Lease:
    return RedisLease(names, "nobody's", 0)


def _unheard_message(state: Availability) -> tuple[str, bytes]:
    return "nobody:listens", b""


RELEASE_WITHOUT_OWNER = "redis.call('del', KEYS[1])"  # answers nil: nobody was handed it
RENEW_NOTHING = "return 1"
# What a guard is in the scripts of the lock, and what is there without it.
SCRIPT_GUARDS = {
    "fairness": ("zpopmin", "zpopmax"),
    "barging": ("not lock and redis.call('exists', KEYS[2]) == 1", "false"),
    "heartbeat": ("heartbeat and now_us() - heartbeat <", "true or 0 <"),
    "ttl": (", 'PX', ttl_ms", ""),
}


def scripts_without(guard: str) -> Iterator[tuple[ModuleType, str, str]]:
    """The scripts of the lock without a guard: the module, the name there, the script."""
    line, instead = SCRIPT_GUARDS[guard]
    assert line in ACQUIRE
    for module, name in ((locks, "ACQUIRE"), (locks, "RELEASE"), (waiters, "KEEP_ALIVE")):
        yield module, name, getattr(module, name).replace(line, instead)


def disable_guard(guard: str) -> None:
    """Take one guard away."""
    match guard:
        case "slot-version":  # check-then-update, as D1 published it
            documents.version_filter = _id_only_filter
        case "team-version":
            teams.version_filter = _id_only_team_filter
        case "lock":
            Locks.acquire = _acquire_always  # type: ignore[method-assign]
        case "lock-owner":  # plain DEL, as D1 published it
            locks.RELEASE = RELEASE_WITHOUT_OWNER  # type: ignore[attr-defined]
        case "renewal":
            leases.RENEW = RENEW_NOTHING  # type: ignore[attr-defined]
        case _ if guard in SCRIPT_GUARDS:
            for module, name, script in scripts_without(guard):
                setattr(module, name, script)
        case "publishing":
            locks.availability_message = _unheard_message  # type: ignore[attr-defined]
        case _ if guard in SWITCHES:
            SWITCHES[guard]()
        case _:
            raise ValueError(guard)


def install_pause(point: str, pause_key: str) -> None:
    """Let the first act that gets to the point wait until the test says go."""
    waited = False

    async def wait() -> None:
        nonlocal waited
        if not waited:
            waited = True
            redis = Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"], socket_timeout=None)
            await redis.lpush(f"{pause_key}:reached", point)
            await redis.blpop([f"{pause_key}:go"], 60)
            await redis.aclose()

    commit, release = SlotWriter.commit, Locks.release

    async def commit_after_pause(self: SlotWriter, changes: ChangeSet) -> CommitResult:
        if (
            changes.slot_updates or changes.preconditions
        ):  # a new slot that depends on nothing is no act
            await wait()
        return await commit(self, changes)

    async def release_after_pause(self: Locks, lease: Lease, *states: Availability) -> None:
        if HOLD_SWEEPER_LOCK not in lease.names:  # the sweeper's turn is no act
            await wait()
        await release(self, lease, *states)

    if point == "commit":
        SlotWriter.commit = commit_after_pause  # type: ignore[method-assign]
    elif point in PAUSE_INSTALLERS:
        PAUSE_INSTALLERS[point]()
    else:
        Locks.release = release_after_pause  # type: ignore[method-assign]


def serve_variant() -> int:
    """Serve the app, or its queue, as the environment wants it."""
    for off in os.environ.get("VARIANT_OFF", "").split():
        disable_guard(off)
    if "VARIANT_PAUSE" in os.environ:
        install_pause(os.environ["VARIANT_PAUSE"], os.environ["VARIANT_STAGE"])
    return main([os.environ.get("VARIANT_COMMAND", "serve")])


if __name__ == "__main__":
    sys.exit(serve_variant())
