"""Finishes changes of organizers whose process crashed before it had applied them everywhere.

A change is committed first and applied afterwards, so that it does not block bookings meanwhile:
the terms of a campaign to its slots, the groups of users to their waitlist entries, and a ban to
the waiting lists. MongoDB shows which of them are incomplete. The hold sweeper runs this about
every two seconds, in one process at a time.
"""

from datetime import timedelta

from slotlock.services.booking.waitlist import remove_recently_banned
from slotlock.services.campaigns.campaigns import resume_propagation
from slotlock.services.container import Services

# A write that was decided longer ago is done or abandoned.
WRITE_GRACE_PERIOD = timedelta(seconds=10)


async def resume_interrupted_work(services: Services) -> None:
    """Finish changes of campaigns, bans and groups that a process did not apply everywhere."""
    await resume_propagation(services)
    await remove_recently_banned(services)
    now = services.now()
    await services.waitlist_groups.sync_pending(now - WRITE_GRACE_PERIOD, now)
