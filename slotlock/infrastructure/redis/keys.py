"""Every key and every channel that slotlock uses in Redis, and the limits that settings name.

Braces mark the hash tag: on a Redis Cluster, all keys with one tag lie on the same node, so that a
script may use them together. All names begin with `slotlock:`, for access lists.
"""

from collections.abc import Iterable
from typing import NamedTuple

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId

PROBE_KEY = "slotlock:probe"

# How many partitions the admission queue has, and how many requests wait in each, by default.
PARTITIONS = 5
MAX_QUEUE_LENGTH = 50_000

# The time that a round trip may take. Bookings without Redis's locks take less time than with a
# Redis that is slower (ADR 0039). With the longest budget, only a failure opens the circuit.
DEFAULT_BUDGET_MS, MAX_BUDGET_MS = 40, 1000

# Lock names other than the ids of slots.
HOLD_SWEEPER_LOCK = "hold-sweeper"
OUTBOX_READER_LOCK = "outbox-reader"
MAIL_SCHEDULE_LOCK = "mail-schedule"
DRAW_WORKER_LOCK = "draw-worker"
# One worker has each of these, and renews it for as long as it runs.
WORKER_LOCKS = (HOLD_SWEEPER_LOCK, OUTBOX_READER_LOCK, MAIL_SCHEDULE_LOCK, DRAW_WORKER_LOCK)
ADMISSION_LOCK_PREFIX = "admission:"
IDEMPOTENCY_LOCK_PREFIX = "idempotency:"

WAKEUP_PREFIX = "slotlock:wake:"
USER_PREFIX = "slotlock:user:"
QUEUE_ADVANCED_PREFIX = "slotlock:queue-advanced:"
SESSION_EVENTS_CHANNEL = "slotlock:session-events"
CHANGE_DIGESTS_PREFIX = "slotlock:change-digests:"


class LockKeys(NamedTuple):
    """The keys of one lock, in the order in which the lock scripts expect them."""

    lock: str
    queue: str
    heartbeats: str


class QueueKeys(NamedTuple):
    """The keys of one partition of the admission queue, in the order of its scripts."""

    requests: str
    tickets: str
    dead_letters: str
    cancelled: str


def lock_keys(name: str) -> LockKeys:
    """Return the keys of the lock with this name."""
    return LockKeys(*all_lock_keys([name]))


def all_lock_keys(names: Iterable[str]) -> list[str]:
    """Return the keys of these locks, one lock after the other."""
    keys: list[str] = []
    for name in names:
        tag = f"slotlock:{{{name}}}:"
        keys += (f"{tag}lock", f"{tag}queue", f"{tag}heartbeats")
    return keys


def locked_name(key: bytes) -> str:
    """Return the name of the lock with this key. Raises: ValueError."""
    return key[key.index(b"{") + 1 : key.index(b"}")].decode()


def admission_lock(partition: int) -> str:
    """Return the name of the lock whose holder processes this partition of the admission queue."""
    return f"{ADMISSION_LOCK_PREFIX}{partition}"


def idempotency_lock(record_id: str) -> str:
    """Return the name of the lock that orders the requests with one idempotency key."""
    return IDEMPOTENCY_LOCK_PREFIX + record_id


def wakeup_channel(instance_id: str) -> str:
    """Return the channel on which a process learns that it was granted a lock."""
    return WAKEUP_PREFIX + instance_id


def queue_keys(partition: int) -> QueueKeys:
    """Return the keys of a partition of the admission queue."""
    tag = f"slotlock:{{queue:{partition}}}:"
    names = ("requests", "tickets", "dead_letters", "cancelled")
    return QueueKeys(*(f"{tag}{name}" for name in names))


def ticket_index_key(user_id: UserId) -> str:
    """Return the key of the index of a user's tickets, of whatever partition."""
    return f"slotlock:{{tickets-of:{user_id}}}"


def ticket_key(user_id: UserId, key_hash: str) -> str:
    """Return the key that names the request for which a user's idempotency key is reserved."""
    return f"slotlock:{{ticket-key:{user_id}{key_hash}}}"


def queue_advanced_channel(slot_id: SlotId) -> str:
    """Return the channel that carries how many requests have left the queue of a slot."""
    return QUEUE_ADVANCED_PREFIX + slot_id


def availability_channel(slot_id: SlotId) -> str:
    """Return the channel that carries the availability of a slot."""
    return f"slotlock:{{{slot_id}}}:availability"


def change_digest_channel(database_id: str) -> str:
    """Return the channel that carries what one process reads from the change stream."""
    return CHANGE_DIGESTS_PREFIX + database_id


def change_reader_key(database_id: str) -> str:
    """Return the key of the lease of the process that reads the change stream."""
    return f"slotlock:{{change-reader:{database_id}}}"


def user_channel(user_id: UserId) -> str:
    """Return the channel that names bookings of a user that others changed."""
    return USER_PREFIX + user_id


def known_address_key(account_hash: str, address_hash: str) -> str:
    """Return the key that exists if an account was signed in to from an address."""
    return f"slotlock:{{known-address:{account_hash}}}:{address_hash}"


def rate_limit_key(subject: str, limit_name: str) -> str:
    """Return the key of a counter. All counters of a subject have one hash tag."""
    return f"slotlock:{{rate:{subject}}}:{limit_name}"
