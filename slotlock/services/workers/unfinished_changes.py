"""Finishes changes of organizers whose process crashed before it had applied them everywhere.

A change is committed first and applied afterwards, so that it does not block bookings meanwhile.
Examples are the terms of a campaign, the groups of users in waitlist entries, the waitlist entries
of banned users, what is left of erased users, and what a process of an older version stores in
another way with a slot or a user. MongoDB shows which of them are incomplete. The hold sweeper runs
this about every two seconds, in one process at a time.
"""

from datetime import timedelta

from slotlock.services.booking.waitlist import remove_recently_banned
from slotlock.services.campaigns.campaigns import resume_propagation
from slotlock.services.container import Services
from slotlock.services.users.erasure import finish_erasures

# A write that was decided longer ago is done or abandoned.
WRITE_GRACE_PERIOD = timedelta(seconds=10)
# Longer than any pause between two sweeps while a process of an older version changes slots, and
# than its clock may be behind. A start repairs what was changed before.
REVISED_WITHIN = timedelta(minutes=10)


async def finish_changes(services: Services) -> None:
    """Finish changes of campaigns, bans, groups and slots that were not applied everywhere."""
    await resume_propagation(services)
    await remove_recently_banned(services)
    await finish_erasures(services)
    now = services.now()
    await services.waitlist_groups.sync_pending(now - WRITE_GRACE_PERIOD, now)
    await services.list_field_repairs.repair(now - REVISED_WITHIN)
    await services.users.repair_search_words()
