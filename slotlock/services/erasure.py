"""Erasing what is stored about a user, after the transaction that erased the account.

Every step can be repeated. The hold sweeper repeats them until no request that began before the
erasure can still be written, so that neither a crash nor a concurrent booking leaves anything.
"""

import logging
from datetime import timedelta

from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.client import after_write, is_unavailable
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.services import teams
from slotlock.services.admission.held_places import cancel_places
from slotlock.services.container import Services

log = logging.getLogger("slotlock")

# A request that began before the erasure is over by then: the longest wait is 20 s.
RECENT_REQUESTS = timedelta(minutes=10)
MAX_ERASURES_PER_RUN = 20


async def finish_erasure(services: Services, erasure: Erasure) -> None:
    """Erase what is left of a user whose account was erased.

    Raises:
        CommitUnknownError: MongoDB is unavailable now; the sweeper continues.
    """
    with after_write():
        await _erase_rest(services, erasure)


async def finish_erasures(services: Services) -> None:
    """Continue with the erasures that are not finished."""
    for erasure in await services.erasures.find_unfinished(MAX_ERASURES_PER_RUN):
        now = services.now()
        try:
            found_bookings = await _erase_rest(services, erasure)
            if not found_bookings and erasure.at < now - RECENT_REQUESTS:
                await services.erasures.delete(erasure)
        except Exception as error:
            if is_unavailable(error):
                raise
            # One unreadable slot must not stop the erasure of other users.
            log.warning("could not finish the erasure of user_%s", erasure.user_id, exc_info=error)
        await services.erasures.set_checked(erasure, now)


async def _erase_rest(services: Services, erasure: Erasure) -> bool:
    """Erase what is left of a user. Return whether there were bookings or waitlist entries."""
    user_id, actor_id = erasure.user_id, erasure.by or erasure.user_id
    actor = Caller(actor_id, Role.ADMIN, "", services.now())
    cancelled = await cancel_places(services, user_id, actor)
    await teams.remove_user(services, user_id, erasure.login_name, erasure.former_login_names)
    await services.resources.remove_leader(user_id)
    await services.users.remove_guardian(user_id)
    await services.wishes.remove_user(user_id)
    await services.draws.remove_users([user_id])
    await services.erasures.erase_details(user_id)
    services.ticket_index.delete(user_id)
    return any(cancelled)
