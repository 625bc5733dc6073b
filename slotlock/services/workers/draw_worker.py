"""Goes on with draws: closes wishes at their time, and does what follows a closing or publication.

One process at a time does it. All of it can be repeated, so that another process goes on where one
died, and two at once lead to the same.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from datetime import timedelta

from slotlock.domain.draws.draw import Draw, DrawState
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.keys import DRAW_WORKER_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait, wait_for_event
from slotlock.services.container import Services
from slotlock.services.draws.draws import close_wishes, store_basis
from slotlock.services.draws.publication import finish_publication

log = logging.getLogger("slotlock.draws")

# The time between two looks at the draws while one is due, and while none is.
INTERVAL_S = 0.5
IDLE_INTERVAL_S = (1.5, 2.5)
BACKOFF_S = 5.0


@contextlib.asynccontextmanager
async def draw_worker(services: Services, lease_locks: Locks) -> AsyncIterator[None]:
    """Go on with draws while the context is open."""
    task = asyncio.create_task(_work_forever(services, lease_locks))
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def _work_forever(services: Services, lease_locks: Locks) -> None:
    while True:
        changed = services.draws.changed.next
        try:
            pause_s = await _advance_due(services, lease_locks)
        except Exception as error:  # it is tried again
            log.warning("could not read draws", exc_info=None if is_unavailable(error) else error)
            pause_s = BACKOFF_S
        await wait_for_event(changed, pause_s)


async def _advance_due(services: Services, lease_locks: Locks) -> float:
    """Go on with what is due, and return after how many seconds to look again."""
    pause_s, now = random.uniform(*IDLE_INTERVAL_S), services.now()  # noqa: S311 - no secret
    draws = await services.draws.find_due(now + timedelta(seconds=pause_s))
    due_at = draws[0].due_at if draws else None
    if due_at is None:
        return pause_s
    if due_at > now:
        return (due_at - now).total_seconds()
    lease = await lease_locks.acquire(DRAW_WORKER_LOCK)
    if lease is not None:
        try:
            await advance_draws(services)
        finally:
            await lease_locks.release(lease)
    return INTERVAL_S


async def advance_draws(services: Services) -> None:
    """Go on with the draws that are due. Raises: PyMongoError."""
    for draw in await services.draws.find_due(services.now()):
        try:
            await _advance(services, draw)
        except Exception as error:
            if is_unavailable(error):
                raise
            # One draw that fails holds up no other.
            log.warning("could not go on with the draw %s", draw.id, exc_info=error)


async def _advance(services: Services, draw: Draw) -> None:
    if draw.state is DrawState.COLLECTING:
        await close_wishes(services, None, draw.campaign_id)
    if draw.state is DrawState.PUBLISHED:
        await finish_publication(services, draw)
    else:
        await store_basis(services, draw.id)
