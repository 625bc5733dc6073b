"""Removes guards of the app from outside; the app itself contains no code for it."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo import DeleteOne, UpdateOne

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.notifications.outbox import Channel, Delivery, OutboxEntry, OutboxState
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.infrastructure.mongo.client import Document, LeasingClient
from slotlock.infrastructure.mongo.clock import MongoClock
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import Checkpoint, SlotChangesReader
from slotlock.infrastructure.mongo.slots import slot_document_updates, write_set
from slotlock.infrastructure.mongo.slots.write_set import WriteSet
from slotlock.infrastructure.redis.locks import locks, waiters
from slotlock.services.admission import queued_batch
from slotlock.services.booking import permissions
from slotlock.services.booking.book import BookingOptions
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.notifications.outbox_sender import OutboxSender

NEXT_FENCE = "math.max(now_us(), highest_fencing_token + 1)"
COUNTED_FENCE = "redis.call('incr', lock_key .. ':fence')"

original_init = LeasingClient.__init__


def _id_only_filter(before: SlotState) -> Document:
    return {"_id": ObjectId(before.id)}


def remove_version_guard() -> None:
    """Write a slot without comparing its version with the one that was loaded."""
    slot_document_updates.version_filter = _id_only_filter


def _init_without_majority(self: LeasingClient, url: str, **options: Any) -> None:
    original_init(self, url, **{**options, "w": 1, "readConcernLevel": "local"})


def remove_majority() -> None:
    """Acknowledge a write that only one member has, and read what an election can undo."""
    LeasingClient.__init__ = _init_without_majority  # type: ignore[method-assign]


def _no_key(*_: Any) -> None:
    return None


def remove_idempotency_records() -> None:
    """Treat every repeated request as a new one."""
    IdempotencyKey.for_creation = _no_key  # type: ignore[method-assign,assignment]
    BookingOptions.to_idempotency_key = _no_key  # type: ignore[method-assign,assignment]
    IdempotencyKey.for_change = _no_key  # type: ignore[method-assign,assignment]


def let_fences_fall() -> None:
    """Take fencing tokens from a counter in Redis, which a lost or empty server forgets."""
    for module in (locks, waiters):
        for name in ("ACQUIRE", "KEEP_ALIVE", "RELEASE"):
            if (script := getattr(module, name, None)) is not None:
                setattr(module, name, script.replace(NEXT_FENCE, COUNTED_FENCE))


def _host_time(_: MongoClock) -> datetime:
    return datetime.now(UTC)


def decide_by_host_clock() -> None:
    """Decide by the clock of the host, which a fault can skew."""
    MongoClock.now = _host_time  # type: ignore[method-assign,assignment]


def _no_updates(_: WriteSet) -> list[UpdateOne | DeleteOne]:
    return []


def remove_user_versions() -> None:
    """Write a booking without comparing the version of its user with the one that was loaded."""
    write_set._merge_user_version_updates = _no_updates  # type: ignore[assignment]


def remove_refresh_grace() -> None:
    """Treat a refresh token that comes again as stolen, also after a lost response."""
    os.environ["SLOTLOCK_REFRESH_GRACE_S"] = "0"


async def _send_later(
    self: OutboxSender, entries: Sequence[OutboxEntry], send: Any = OutboxSender._send
) -> None:
    await self._record(entries, Delivery(OutboxState.SENT, "taken"))
    await send(self, entries)


def record_before_sending() -> None:
    """Record that a mail was sent before it is, so that no other process sends it."""
    OutboxSender._send = _send_later  # type: ignore[method-assign]


async def _from_now_on(_reader: SlotChangesReader, _channel: Channel, now: datetime) -> Checkpoint:
    return Checkpoint(now, now)


def forget_checkpoint() -> None:
    """Read changes from the start of the reader on, and forget where another one ended."""
    SlotChangesReader.load_checkpoint = _from_now_on  # type: ignore[method-assign,assignment]


async def _lease_all(
    self: OutboxRepository,
    due: Sequence[OutboxEntry],
    now: datetime,
    lease: Any = OutboxRepository.lease,
) -> list[list[OutboxEntry]]:
    leased = await lease(self, due, now)
    own = {entries[0].id for entries in leased}
    return [*leased, *([entry] for entry in due if entry.id not in own)]


def send_without_lease() -> None:
    """Send a mail although another process was first to lease it."""
    OutboxRepository.lease = _lease_all  # type: ignore[method-assign]


_DEPENDENTS = set[tuple[UserId, UserId]]()


def _with_former_dependents(caller: Caller, users: Iterable[User]) -> Caller:
    found = {each.id: each.guardians for each in users}
    _DEPENDENTS.update((by, child) for child, guardians in found.items() for by in guardians)
    acts_for = frozenset(each for each in found if (caller.user_id, each) in _DEPENDENTS)
    return replace(caller, acts_for=acts_for) if acts_for else caller


def let_former_guardians_act() -> None:
    """Let everybody act for a user whose guardian they were in a request before."""
    permissions.with_known_dependents = _with_former_dependents
    queued_batch.with_known_dependents = _with_former_dependents  # type: ignore[attr-defined]


CONTROLS: dict[str, Callable[[], None]] = {
    "version-guard": remove_version_guard,
    "fence": let_fences_fall,
    "majority": remove_majority,
    "idempotency": remove_idempotency_records,
    "clock": decide_by_host_clock,
    "limit": remove_user_versions,
    "refresh": remove_refresh_grace,
    "mail-record": record_before_sending,
    "mail-checkpoint": forget_checkpoint,
    "mail-lease": send_without_lease,
    "guardian": let_former_guardians_act,
}
