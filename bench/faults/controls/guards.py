"""Removes guards of the app from outside; the app itself contains no code for it."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from pymongo import DeleteOne, UpdateOne

from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import Document, LeasingClient
from slotlock.infrastructure.mongo.clock import MongoClock
from slotlock.infrastructure.mongo.slots import change_set, document_updates
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet
from slotlock.infrastructure.redis.locks import locks, waiters
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.changes import BookingChangeRequest
from slotlock.services.idempotency_key import IdempotencyKey

NEXT_FENCE = "math.max(now_us(), highest_fencing_token + 1)"
COUNTED_FENCE = "redis.call('incr', lock_key .. ':fence')"

original_init = LeasingClient.__init__


def _id_only_filter(before: SlotState) -> Document:
    return {"_id": ObjectId(before.id)}


def remove_version_guard() -> None:
    """Write a slot without comparing its version with the one that was loaded."""
    document_updates.version_filter = _id_only_filter


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
    BookingChangeRequest.to_idempotency_key = _no_key  # type: ignore[method-assign,assignment]


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


def _no_updates(_: ChangeSet) -> list[UpdateOne | DeleteOne]:
    return []


def remove_user_versions() -> None:
    """Write a booking without comparing the version of its user with the one that was loaded."""
    change_set._merge_user_version_updates = _no_updates  # type: ignore[assignment]


def remove_refresh_grace() -> None:
    """Treat a refresh token that comes again as stolen, also after a lost response."""
    os.environ["SLOTLOCK_REFRESH_GRACE_S"] = "0"


CONTROLS: dict[str, Callable[[], None]] = {
    "version-guard": remove_version_guard,
    "fence": let_fences_fall,
    "majority": remove_majority,
    "idempotency": remove_idempotency_records,
    "clock": decide_by_host_clock,
    "limit": remove_user_versions,
    "refresh": remove_refresh_grace,
}
