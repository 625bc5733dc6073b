"""Guards of the worker that sends mail, and a request that dies while it fills the outbox."""

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bson import ObjectId

from slotlock.domain.notifications import optional_mails
from slotlock.domain.notifications.announcements import Announcement
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.infrastructure.mongo.outbox.announcement_repository import AnnouncementRepository
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.services.notifications import announcements, scheduled_mails

original_reminder, original_insert = optional_mails.reminder, OutboxRepository.insert


def _reminder_with_random_id(*arguments: Any) -> OutboxEntry:
    return replace(original_reminder(*arguments), id=str(ObjectId()))


def remind_with_random_ids() -> None:
    """Give each reminder an id of its own."""
    scheduled_mails.reminder = _reminder_with_random_id  # type: ignore[attr-defined,assignment]


async def _find_none(*_: object) -> list[Announcement]:
    return []


def leave_announcements() -> None:
    """Leave announcements whose requests died to their clients."""
    AnnouncementRepository.find_unfinished = _find_none  # type: ignore[method-assign,assignment]


GUARDS: dict[str, Callable[[], None]] = {
    "reminder-ids": remind_with_random_ids,
    "unfinished-announcements": leave_announcements,
}


async def _insert_and_die(
    self: OutboxRepository, entries: Sequence[OutboxEntry], now: datetime, *rest: Any
) -> int:
    inserted = await original_insert(self, entries, now, *rest)
    if any("announcement" in entry.data for entry in entries):
        os.kill(os.getpid(), signal.SIGKILL)
    return inserted


def kill_on_announcements() -> None:
    """Kill the process once the first mail of an announcement is in the outbox."""
    announcements.BATCH_SIZE = 1
    OutboxRepository.insert = _insert_and_die  # type: ignore[method-assign,assignment]


FAULTS: dict[str, Callable[[], None]] = {"announcements-kill": kill_on_announcements}
