"""Inserts the mails that are due because of the time, in one process at a time.

Nothing is stored for a mail before it is due: once a minute, the slots and campaigns say what is
due since the last time. Each mail has an id that follows from its booking and its time, so that two
processes at once add it once. What is due while no process runs is inserted later, unless the slot
has begun or the campaign has opened. Announcements whose requests died are finished, too.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.notifications.optional_mails import (
    has_place_since,
    opening_mail,
    opening_mail_time,
    reminder,
    reminder_time,
)
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.notifications.quiet_hours import MAX_SHIFT, QuietHours
from slotlock.domain.schedule.meetings import Meeting
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.keys import MAIL_SCHEDULE_LOCK
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.services.container import Services
from slotlock.services.notifications.announcements import finish_interrupted
from slotlock.services.notifications.recipients import to_recipients

log = logging.getLogger("slotlock.outbox")

INTERVAL_S = 60.0
BACKOFF_S = 5.0
# What was decided before the time of a mail is written by then, or never.
WRITE_GRACE_PERIOD = timedelta(minutes=2)
READ_BATCH_SIZE = 50
INSERT_BATCH_SIZE = 1000


@contextlib.asynccontextmanager
async def mail_schedule(
    services: Services, lease_locks: Locks, quiet: QuietHours | None
) -> AsyncIterator[None]:
    """Insert reminders and mails about openings while the context is open."""
    task = asyncio.create_task(_run_forever(MailSchedule(services, quiet), lease_locks))
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def _run_forever(schedule: "MailSchedule", lease_locks: Locks) -> None:
    while True:
        # Also if another process has the lease: it may have died.
        pause_s = BACKOFF_S
        try:
            # Without it, another process inserts the same.
            lease = await lease_locks.acquire(MAIL_SCHEDULE_LOCK)
            if lease is not None:
                try:
                    await schedule.insert_due()
                    pause_s = INTERVAL_S
                finally:
                    await lease_locks.release(lease)
        except Exception as error:  # what is due is inserted the next time
            log.warning(
                "could not look for reminders",
                exc_info=None if is_unavailable(error) else error,
            )
        await asyncio.sleep(pause_s)


class MailSchedule:
    """Finds what is due since the last time, and inserts it into the outbox."""

    def __init__(self, services: Services, quiet: QuietHours | None) -> None:
        self._services = services
        self._queries = services.scheduled_mails
        self._quiet = quiet

    async def insert_due(self) -> None:
        """Insert what is due until now, and what announcements lack. Raises: PyMongoError."""
        now = self._services.now()
        if self._quiet is not None:
            self._quiet = self._quiet.in_zone((await self._services.site.load()).time_zone)
        since = await self._queries.load_checkpoint() or now
        due = Meeting(since - WRITE_GRACE_PERIOD, now)
        await self._insert_reminders(due)
        await self._insert_opening_mails(due)
        await self._queries.save_checkpoint(now)
        await finish_interrupted(self._services)

    def _planned(self, due: Meeting) -> Meeting:
        """Return for when mails that are due in a period are planned: quiet hours move them."""
        slack = MAX_SHIFT if self._quiet else timedelta()
        return Meeting(due.start - slack, due.end + slack)

    async def _insert_reminders(self, due: Meeting) -> None:
        slots = await self._queries.find_slots(self._planned(due), due.end)
        slot_ids = [
            slot.id
            for slot in slots
            if (at := reminder_time(slot, self._quiet)) and due.start <= at <= due.end
        ]
        for batch in chunked(slot_ids, READ_BATCH_SIZE):
            for state in await self._queries.find_with_bookings(batch):
                slot, at = state.slot, reminder_time(state.slot, self._quiet)
                if at is None or slot.is_hidden or slot.status is not SlotStatus.PUBLISHED:
                    continue
                # Who booked later than that knows the time.
                reminded = [
                    reminder(slot, booking, at, due.end)
                    for booking in state.bookings
                    if (since := has_place_since(booking)) and since <= at
                ]
                await self._insert(await to_recipients(self._services, reminded))

    async def _insert_opening_mails(self, due: Meeting) -> None:
        for terms in await self._queries.find_openings(self._planned(due), due.end):
            at = opening_mail_time(terms, self._quiet)
            if at is None or not due.start <= at <= due.end:
                continue
            found = self._services.eligible_users.find_recipients(terms)
            await self._insert([opening_mail(terms, each, at, due.end) async for each in found])

    async def _insert(self, entries: list[OutboxEntry]) -> None:
        for batch in chunked(entries, INSERT_BATCH_SIZE):
            await self._services.outbox.insert(batch, self._services.now())
