"""Goes on with draws: closes wishes at their time, and does what follows a closing or publication.

One process at a time does it. All of it can be repeated, so that another process goes on where one
died, and two at once lead to the same.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from slotlock.domain.draws.draw import Draw, DrawState
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.keys import DRAW_WORKER_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.services.container import Services
from slotlock.services.draws.draws import close_wishes, store_basis
from slotlock.services.draws.publication import finish_publication

log = logging.getLogger("slotlock.draws")

INTERVAL_S = 0.5
BACKOFF_S = 5.0
MAX_LEASE_WAIT_S = 10.0


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
        try:
            lease = await lease_locks.acquire(DRAW_WORKER_LOCK, wait_s=MAX_LEASE_WAIT_S)
            if lease is None:
                continue
            try:
                while not lease.lost.is_set():
                    await advance_draws(services)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(INTERVAL_S):
                            await lease.lost.wait()
            finally:
                await lease_locks.release(lease)
        except Exception as error:  # it is tried again
            log.warning("could not read draws", exc_info=None if is_unavailable(error) else error)
            await asyncio.sleep(BACKOFF_S)


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
