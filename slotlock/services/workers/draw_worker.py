"""Goes on with draws: closes wishes at their time, and does what follows a closing or publication.

One process at a time does it. All of it can be repeated, so that another process goes on where one
died, and two at once lead to the same. A draw that fails is deferred, and holds up no other; after
some failures `slotlock doctor` and `Draw.problem` name it.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator
from datetime import timedelta

from slotlock.domain.draws.basis import DrawId
from slotlock.domain.draws.draw import Draw, DrawState, close, retry_delay
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.draws.draw_repository import DueDraw
from slotlock.infrastructure.redis.keys import DRAW_WORKER_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait, wait_for_event
from slotlock.services.container import Services
from slotlock.services.draws.draws import store_basis
from slotlock.services.draws.public_records import finish_record
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
    due = await services.draws.find_due(now + timedelta(seconds=pause_s))
    if not due:
        return pause_s
    if due[0].due_at > now:
        return (due[0].due_at - now).total_seconds()
    lease = await lease_locks.acquire(DRAW_WORKER_LOCK)
    if lease is not None:
        try:
            await advance_draws(services)
        finally:
            await lease_locks.release(lease)
    return INTERVAL_S


async def advance_draws(services: Services) -> None:
    """Go on with the draws that are due, and defer those with which that fails.

    Raises: PyMongoError.
    """
    for due in await services.draws.find_due(services.now()):
        try:
            problem, error = await _advance(services, due.id), None
        except Exception as raised:
            if is_unavailable(raised):
                raise
            problem, error = type(raised).__name__, raised
        if problem is not None:
            await _defer(services, due, problem, error)


async def _defer(services: Services, due: DueDraw, problem: str, error: Exception | None) -> None:
    """Let a draw wait, and log it unless it waits as long as before."""
    failures, now = due.failures + 1, services.now()
    delay = retry_delay(failures)
    await services.draws.defer(due.id, failures, problem, now, now + delay)
    if failures == 1 or delay > retry_delay(due.failures):
        message = "could not go on with draw %s, again in %d s: %s"
        log.warning(message, due.id, delay.total_seconds(), problem, exc_info=error)


async def _advance(services: Services, draw_id: DrawId) -> str | None:
    """Go on with a draw. Return why it is still due, or None."""
    draw, outcome = await services.draws.find(draw_id), None
    if draw is None:
        return None
    if draw.lacks_record:
        await finish_record(services, draw)
        return None
    if await services.campaigns.find(draw.campaign_id) is None:
        await services.draws.end(draw.campaign_id, services.now())
        return None
    if draw.state is DrawState.COLLECTING and not await _close_due(services, draw):
        return None
    if draw.state is DrawState.PUBLISHED:
        await finish_publication(services, draw)
    else:
        outcome = await store_basis(services, draw_id)
    after = await services.draws.find(draw_id)
    if after is None or after.due_at is None or after.due_at > services.now():
        return None
    return type(outcome).__name__ if outcome else "unfinished"


async def _close_due(services: Services, draw: Draw) -> bool:
    """Close the wishes of a draw if its time has passed; False if it is not closed.

    Its time may have been extended since it was found to be due. If it changes from now on, it is
    not written, and the next look decides again.
    """
    now = services.now()
    if draw.settings.wishes_until > now:
        return False
    closed = close(draw, None, now)
    return isinstance(closed, Draw) and await services.draws.update(draw, closed)
