"""The app with a guard switched off, or stopped at a point of an act: `python -m tests.support...`.

Negative controls need an app that lacks a guard, and races need one that waits where a test wants
it to. Both are made here, from outside: the app itself knows nothing of it.

    VARIANT_OFF     guards to switch off, of: version lock owner ttl announcements
                    team-version
    VARIANT_PAUSE   where the first act that gets there waits, of: commit release
    VARIANT_STAGE   the name under which the test follows and frees it
"""

import os
import sys
from typing import Any

from bson import ObjectId
from redis.asyncio import Redis

from slotlock.api.cli import main
from slotlock.domain.slots import Availability, Slot, SlotId
from slotlock.domain.teams import TeamSeen
from slotlock.stores import locks, slot_documents, teams
from slotlock.stores.locks import Lease, Locks
from slotlock.stores.writes import Writes


def _unguarded(before: Slot) -> dict[str, Any]:
    return {"_id": ObjectId(before.id)}


def _unguarded_team(seen: TeamSeen) -> dict[str, Any]:
    return {"_id": ObjectId(seen.team_id)}


async def _always(self: Locks, slot_id: SlotId) -> Lease:
    return Lease(slot_id, "nobody's")


def _unheard(state: Availability) -> tuple[str, bytes]:
    return "nobody:listens", b""


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
            locks.RELEASE = "return redis.call('del', KEYS[1])"
        case "ttl":
            locks.ACQUIRE = locks.ACQUIRE.replace(", 'PX', ARGV[2]", "")
        case "announcements":
            locks.announcement = _unheard  # type: ignore[attr-defined]
        case _:
            raise ValueError(guard)


def pause(point: str, stage: str) -> None:
    """Let the first act that gets to the point wait until the test says go."""
    waited = False

    async def wait() -> None:
        nonlocal waited
        if not waited:
            waited = True
            redis = Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"])
            await redis.lpush(f"{stage}:reached", point)
            await redis.blpop([f"{stage}:go"], 60)
            await redis.aclose()

    commit, release = Writes.commit, Locks.release

    async def late_commit(*arguments: Any) -> bool:
        await wait()
        return await commit(*arguments)

    async def late_release(*arguments: Any) -> None:
        await wait()
        await release(*arguments)

    if point == "commit":
        Writes.commit = late_commit  # type: ignore[method-assign,assignment]
    else:
        Locks.release = late_release  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    for off in os.environ.get("VARIANT_OFF", "").split():
        switch_off(off)
    if "VARIANT_PAUSE" in os.environ:
        pause(os.environ["VARIANT_PAUSE"], os.environ["VARIANT_STAGE"])
    sys.exit(main(["serve"]))
