"""Finishes changes of organizers whose process crashed before it had applied them everywhere.

A change is committed first and applied afterwards, so that it does not block bookings meanwhile.
Examples are the terms of a campaign, the groups of users in waitlist entries, the waitlist entries
of banned users, and what is left of erased users. MongoDB shows which of them are incomplete. The
hold sweeper runs this about every two seconds, in one process at a time.
"""

from datetime import timedelta

from slotlock.services.booking.waitlist import remove_recently_banned
from slotlock.services.campaigns.campaigns import resume_propagation
from slotlock.services.container import Services
from slotlock.services.users.erasure import finish_erasures

# A write that was decided longer ago is done or abandoned.
WRITE_GRACE_PERIOD = timedelta(seconds=10)


async def finish_changes(services: Services) -> None:
    """Finish changes of campaigns, bans and groups that a process did not apply everywhere."""
    await resume_propagation(services)
    await remove_recently_banned(services)
    await finish_erasures(services)
    now = services.now()
    await services.waitlist_groups.sync_pending(now - WRITE_GRACE_PERIOD, now)
