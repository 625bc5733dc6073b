"""Turns what changed into entries of the outbox, in one process at a time.

The change stream names the slots that changed, and their histories say what happened. Each entry
has an id that follows from its change, so that whatever is read again adds nothing: by a process
that continues where another one died, or after a stream whose token MongoDB no longer knows.

While nothing is to be sent, because mail is off and no webhook is enabled, nothing is read.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.slot_changes import SlotChanges
from slotlock.domain.notifications.webhook_messages import (
    entries_for,
    messages_about,
    site_messages_about,
)
from slotlock.domain.notifications.webhooks import SITE_EVENTS, Webhook
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeStream
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import (
    Checkpoint,
    Unread,
    is_history_lost,
)
from slotlock.infrastructure.redis.keys import OUTBOX_READER_LOCK
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import FailingItems, cancel_and_wait, wait_for_event
from slotlock.services.container import Services
from slotlock.services.notifications.recipients import to_recipients

log = logging.getLogger("slotlock.outbox")

MAX_LEASE_WAIT_S = 10.0
BACKOFF_S = 0.5
# How soon a first webhook is noticed that another process inserted.
IDLE_PAUSE_S = 2.0
# Under load, so many changes of a slot are one read.
PAUSE_S = 0.2
# What was decided longer ago is written, or never.
WRITE_GRACE_PERIOD = timedelta(seconds=30)
# A write whose majority comes late may be older than the checkpoint that does not have it yet.
RESCAN_MARGIN = timedelta(minutes=10)
IDLE_CHECKPOINT_EVERY = timedelta(seconds=10)
READ_BATCH_SIZE = 50
INSERT_BATCH_SIZE = 1000

Producer = Callable[[SlotChanges], Iterable[OutboxEntry]]


@contextlib.asynccontextmanager
async def outbox_reader(
    services: Services, lease_locks: Locks, channel: Channel, producers: Sequence[Producer] = ()
) -> AsyncIterator[None]:
    """Insert the entries of a channel while the context is open.

    Each channel is read by itself, because a process without mail may read for webhooks. Those of
    webhooks follow from what is stored, all others are those of the producers.
    """
    reader = OutboxReader(services, channel, producers)
    task = asyncio.create_task(_read_forever(services, reader, lease_locks))
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def _read_forever(services: Services, reader: "OutboxReader", lease_locks: Locks) -> None:
    while True:
        webhook_changed = services.webhooks.changed.next
        try:
            if not await reader.is_needed():
                await wait_for_event(webhook_changed, IDLE_PAUSE_S)
                continue
            lease = await lease_locks.acquire(reader.lock_name, wait_s=MAX_LEASE_WAIT_S)
            if lease is not None:
                try:
                    await reader.read_while_held(lease)
                finally:
                    await lease_locks.release(lease)
        except Exception as error:  # the changes are read again
            log.warning(
                "could not read changes for the outbox",
                exc_info=None if is_unavailable(error) else error,
            )
            await asyncio.sleep(BACKOFF_S)


class OutboxReader:
    """Reads changes from the stored checkpoint on."""

    def __init__(
        self, services: Services, channel: Channel, producers: Sequence[Producer] = ()
    ) -> None:
        self.lock_name = f"{OUTBOX_READER_LOCK}:{channel}"
        self._services = services
        self._channel = channel
        self._changes = services.slot_changes
        self._producers = producers
        # Ids that were inserted, by the time of their changes, as long as these are read again.
        self._inserted: dict[str, datetime] = {}
        self._failing = FailingItems()

    async def is_needed(self) -> bool:
        """Return whether anybody wants entries of the channel."""
        return bool(self._producers or await self._find_webhooks())

    async def read_while_held(self, lease: LockLease) -> None:
        """Read until the lease is lost. Raises: PyMongoError."""
        self._inserted.clear()
        checkpoint = await self._changes.load_checkpoint(self._channel, self._services.now())
        stream, is_continued = await self._changes.open_stream(checkpoint)
        try:
            if not is_continued:
                checkpoint = await self._rescan(checkpoint, stream)
            while not lease.lost.is_set():
                checkpoint = await self._read_next(checkpoint, stream)
        except Exception as error:
            if is_history_lost(error):
                await self._changes.save_checkpoint(self._channel, replace(checkpoint, token=None))
            raise
        finally:
            await stream.close()

    async def _rescan(self, checkpoint: Checkpoint, stream: ChangeStream) -> Checkpoint:
        """Read all that changed since the checkpoint; the stream begins before that."""
        if checkpoint.token is not None:
            log.warning("MongoDB cannot continue the change stream: all changed slots are read")
        now, since = self._services.now(), checkpoint.at - RESCAN_MARGIN
        slot_ids, webhooks = (
            await self._changes.find_changed_since(since),
            await self._find_webhooks(),
        )
        await self._read(slot_ids, max(since, checkpoint.started_at), webhooks)
        await self._read_site(checkpoint, now, webhooks)
        return await self._save(checkpoint, now, stream)

    async def _read_next(self, checkpoint: Checkpoint, stream: ChangeStream) -> Checkpoint:
        now, batch = self._services.now(), await stream.next_changes()
        webhooks = await self._find_webhooks()
        if batch.slot_versions and batch.first_written_at:
            since = batch.first_written_at - WRITE_GRACE_PERIOD
            await self._read(list(batch.slot_versions), max(since, checkpoint.started_at), webhooks)
        await self._read_site(checkpoint, now, webhooks)
        if not batch.slot_versions and now - checkpoint.at < IDLE_CHECKPOINT_EVERY:
            return checkpoint
        checkpoint = await self._save(checkpoint, now, stream)
        await asyncio.sleep(PAUSE_S)
        return checkpoint

    async def _save(
        self, checkpoint: Checkpoint, now: datetime, stream: ChangeStream
    ) -> Checkpoint:
        """Store that all that the stream has returned was read."""
        checkpoint = replace(checkpoint, at=now, token=stream.resume_token)
        await self._changes.save_checkpoint(self._channel, checkpoint)
        return checkpoint

    async def _find_webhooks(self) -> list[Webhook]:
        if self._channel is not Channel.WEBHOOK:
            return []
        return await self._services.webhooks.find_all(enabled_only=True)

    async def _read(
        self, slot_ids: Sequence[SlotId], since: datetime, webhooks: Sequence[Webhook]
    ) -> None:
        """Insert what changed in these slots since then."""
        self._inserted = {id_: at for id_, at in self._inserted.items() if at >= since}
        producers = list(self._producers)
        if webhooks:
            producers.append(lambda changes: entries_for(webhooks, messages_about(changes)))
        for batch in chunked(slot_ids, READ_BATCH_SIZE) if producers else ():
            await self._insert(await self._produce(batch, since, producers))

    async def _read_site(
        self, checkpoint: Checkpoint, now: datetime, webhooks: Sequence[Webhook]
    ) -> None:
        """Insert what happened to campaigns and users, if a webhook gets it."""
        if any(SITE_EVENTS.intersection(webhook.events) for webhook in webhooks):
            since = max(checkpoint.at - WRITE_GRACE_PERIOD, checkpoint.started_at)
            changes, problems = await self._changes.read_site(since, now)
            for what, error in problems.items():
                await self._report(what, error)
            await self._insert(entries_for(webhooks, site_messages_about(changes)))

    async def _insert(self, entries: Iterable[OutboxEntry]) -> None:
        new = [entry for entry in entries if entry.id not in self._inserted]
        for batch in chunked(new, INSERT_BATCH_SIZE):
            mails = await to_recipients(self._services, batch)
            await self._services.outbox.insert(mails, self._services.now())
            self._inserted.update((entry.id, entry.at) for entry in batch)

    async def _produce(
        self, slot_ids: Sequence[SlotId], since: datetime, producers: Sequence[Producer]
    ) -> list[OutboxEntry]:
        """Return the entries about these slots. One that cannot be read holds up no other."""
        try:
            return [
                entry
                for changes in await self._changes.read(slot_ids, since)
                for producer in producers
                for entry in producer(changes)
            ]
        except Exception as error:
            if is_unavailable(error):
                raise
            if len(slot_ids) == 1:
                await self._report(f"slot_{slot_ids[0]}", error)
                return []
        each = [await self._produce([slot_id], since, producers) for slot_id in slot_ids]
        return [entry for entries in each for entry in entries]

    async def _report(self, what: str, error: Exception) -> None:
        """Log what cannot be read, and record it for `slotlock doctor`: once, then more seldom."""
        now = self._services.now()
        if what in self._failing.waiting(now):
            return
        self._failing.add(what, now)
        log.warning("the outbox cannot read %s", what, exc_info=error)
        await self._changes.record_unread(self._channel, Unread(what, repr(error), now))
