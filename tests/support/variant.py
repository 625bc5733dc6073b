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

import asyncio
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from bson import ObjectId
from redis.asyncio import Redis

from slotlock.api.cli import main
from slotlock.desk.sweeping import TURN
from slotlock.domain.availability import Availability
from slotlock.domain.bookings import SlotId
from slotlock.domain.slots import Slot
from slotlock.domain.teams import TeamSeen
from slotlock.stores import leases, locks, slot_documents, teams, waiting
from slotlock.stores.lock_scripts import ACQUIRE
from slotlock.stores.locks import Lease, Locks
from slotlock.stores.writes import Changes, Writes
from tests.support.variants import (
    campaigns,
    live,
    locking,
    passing,
    queue,
    queueing,
    rules,
    series,
    sessions,
    sockets,
    stock,
    writing,
)

# Each of them by its name, and how it is switched off.
MORE = {
    **locking.GUARDS,
    **writing.GUARDS,
    **writing.MISHAPS,
    **stock.GUARDS,
    **rules.GUARDS,
    **campaigns.GUARDS,
    **series.GUARDS,
    **live.GUARDS,
    **sessions.GUARDS,
    **sockets.GUARDS,
    **sockets.MISHAPS,
    **queue.GUARDS,
    **queueing.GUARDS,
    **queueing.MISHAPS,
    **passing.GUARDS,
    **passing.MISHAPS,
}
# Points that are reached in a part of the app of their own.
PAUSABLE = {
    **dict.fromkeys(("record", "transaction", "between"), writing.pausable),
    **dict.fromkeys(queueing.POINTS, queueing.pausable),
    "spread": campaigns.pausable,
    "plan": series.pausable,
    **dict.fromkeys(("batch", "batches"), queue.pausable),
}


def _unguarded(before: Slot) -> dict[str, Any]:
    return {"_id": ObjectId(before.id)}


def _unguarded_team(seen: TeamSeen) -> dict[str, Any]:
    return {"_id": ObjectId(seen.team_id)}


async def _always(self: Locks, *slot_ids: SlotId, wait_s: float = 0.0) -> Lease:
    return Lease(slot_ids, "nobody's", 0, asyncio.Event())


def _unheard(state: Availability) -> tuple[str, bytes]:
    return "nobody:listens", b""


UNOWNED = "redis.call('del', KEYS[1])"  # answers nil: nobody was handed it
UNRENEWED = "return 1"
# What a guard is in the scripts of the lock, and what is there without it.
IN_SCRIPTS = {
    "fairness": ("zpopmin", "zpopmax"),
    "barging": ("not lock and redis.call('exists', KEYS[2]) == 1", "false"),
    "heartbeat": ("beat and micros() - beat <", "true or 0 <"),
    "ttl": (", 'PX', ms", ""),
}


def scripts_without(guard: str) -> Iterator[tuple[ModuleType, str, str]]:
    """The scripts of the lock without a guard: the module, the name there, the script."""
    line, instead = IN_SCRIPTS[guard]
    assert line in ACQUIRE
    for module, name in ((locks, "ACQUIRE"), (locks, "RELEASE"), (waiting, "TEND")):
        yield module, name, getattr(module, name).replace(line, instead)


def switch_off(guard: str) -> None:
    """Take one guard away."""
    match guard:
        case "version":  # check-then-update, as D1 published it
            slot_documents.guard = _unguarded
        case "team-version":
            teams.guard = _unguarded_team
        case "lock":
            Locks.acquire = _always  # type: ignore[method-assign]
        case "owner":  # plain DEL, as D1 published it
            locks.RELEASE = UNOWNED  # type: ignore[attr-defined]
        case "renewal":
            leases.RENEW = UNRENEWED  # type: ignore[attr-defined]
        case _ if guard in IN_SCRIPTS:
            for module, name, script in scripts_without(guard):
                setattr(module, name, script)
        case "announcements":
            locks.announcement = _unheard  # type: ignore[attr-defined]
        case _ if guard in MORE:
            MORE[guard]()
        case _:
            raise ValueError(guard)


def pause(point: str, stage: str) -> None:
    """Let the first act that gets to the point wait until the test says go."""
    waited = False

    async def wait() -> None:
        nonlocal waited
        if not waited:
            waited = True
            redis = Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"], socket_timeout=None)
            await redis.lpush(f"{stage}:reached", point)
            await redis.blpop([f"{stage}:go"], 60)
            await redis.aclose()

    commit, release = Writes.commit, Locks.release

    async def late_commit(self: Writes, changes: Changes) -> bool:
        if changes.slots or changes.guards:  # a new slot that depends on nothing is no act
            await wait()
        return await commit(self, changes)

    async def late_release(self: Locks, lease: Lease, *news: Availability) -> None:
        if TURN not in lease.slot_ids:  # the sweeper's turn is no act
            await wait()
        await release(self, lease, *news)

    if point == "commit":
        Writes.commit = late_commit  # type: ignore[method-assign]
    elif point in PAUSABLE:
        PAUSABLE[point]()
    else:
        Locks.release = late_release  # type: ignore[method-assign]


def serve() -> int:
    """Serve the app, or its queue, as the environment wants it."""
    for off in os.environ.get("VARIANT_OFF", "").split():
        switch_off(off)
    if "VARIANT_PAUSE" in os.environ:
        pause(os.environ["VARIANT_PAUSE"], os.environ["VARIANT_STAGE"])
    return main([os.environ.get("VARIANT_COMMAND", "serve")])


if __name__ == "__main__":
    sys.exit(serve())
