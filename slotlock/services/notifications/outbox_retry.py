"""Sends entries of the outbox again, for admins and the command line.

The addresses of their users count as deliverable again, also for other mails.
"""

from datetime import datetime

from slotlock.domain.notifications.outbox import (
    MAX_RETRIED,
    OutboxEntriesQueued,
    OutboxEntryQueued,
    OutboxState,
)
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.infrastructure.mongo.users.user_repository import UserRepository


async def retry_entry(
    outbox: OutboxRepository, users: UserRepository, entry_id: str, now: datetime
) -> OutboxEntryQueued | InvalidInput:
    """Queue an entry that was not sent, or waits for its next attempt, and those sent with it."""
    entry = await outbox.find(entry_id)
    lead_id = (entry and entry.lead_id) or entry_id
    queued = await outbox.retry(lead_id, now)
    found = await outbox.find(lead_id) if queued else None
    if found:
        await users.clear_undeliverable([found.user_id] if found.user_id else [])
        return OutboxEntryQueued(found)
    return InvalidInput((FieldProblem("id", ProblemCode.NOT_SENT_AGAIN.problem()),))


async def retry_chosen(
    outbox: OutboxRepository, users: UserRepository, chosen: OutboxFilter, now: datetime
) -> OutboxEntriesQueued | InvalidInput:
    """Queue unsent entries that a filter selects, at most `MAX_RETRIED`."""
    if chosen.state not in (None, OutboxState.FAILED, OutboxState.SUPPRESSED):
        return InvalidInput((FieldProblem("state", ProblemCode.NOT_SENT_AGAIN.problem()),))
    return OutboxEntriesQueued(await retry_unsent(outbox, users, chosen, now, MAX_RETRIED))


async def retry_unsent(
    outbox: OutboxRepository,
    users: UserRepository,
    chosen: OutboxFilter,
    now: datetime,
    limit: int,
) -> int:
    """Queue the newest entries that a filter selects, and return how many these were.

    They failed, or were suppressed because of an undeliverable address.
    """
    entries = await outbox.find_unsent(chosen, limit)
    # If the process dies here, a second request queues them.
    await users.clear_undeliverable({entry.user_id for entry in entries if entry.user_id})
    return await outbox.retry_all([entry.id for entry in entries], now)
