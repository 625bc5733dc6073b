"""The gauge that tells whether this process uses Redis fully."""

from prometheus_client import Gauge

REDIS_DEGRADED = Gauge(
    "slotlock_redis_degraded",
    "1 while bookings continue without Redis, or messages from Redis do not arrive",
    multiprocess_mode="livemax",
)
_degraded_parts: set[object] = set()


def set_degraded(part: object, *, degraded: bool) -> bool:
    """Record whether a part of this process goes without Redis. Return whether that changed."""
    changed = degraded != (part in _degraded_parts)
    if degraded:
        _degraded_parts.add(part)
    else:
        _degraded_parts.discard(part)
    REDIS_DEGRADED.set(bool(_degraded_parts))
    return changed
