"""Sends an entry of the outbox again, for admins and the command line."""

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


async def retry_entry(
    outbox: OutboxRepository, entry_id: str, now: datetime
) -> OutboxEntryQueued | InvalidInput:
    """Queue an entry that failed, or waits for its next attempt, and those sent with it."""
    entry = await outbox.find(entry_id)
    lead_id = (entry and entry.lead_id) or entry_id
    queued = await outbox.retry(lead_id, now)
    found = await outbox.find(lead_id) if queued else None
    if found:
        return OutboxEntryQueued(found)
    return InvalidInput((FieldProblem("id", ProblemCode.NOT_SENT_AGAIN.problem()),))


async def retry_failed(
    outbox: OutboxRepository, chosen: OutboxFilter, now: datetime
) -> OutboxEntriesQueued | InvalidInput:
    """Queue the newest failed entries that a filter selects, at most `MAX_RETRIED`."""
    if chosen.state not in (None, OutboxState.FAILED):
        return InvalidInput((FieldProblem("state", ProblemCode.NOT_SENT_AGAIN.problem()),))
    return OutboxEntriesQueued(await outbox.retry_failed(chosen, MAX_RETRIED, now))
