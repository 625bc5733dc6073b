"""The locks that one script acquires or releases."""

from collections.abc import Sequence
from typing import NamedTuple

from slotlock.infrastructure.redis.auto_pipeline import Command
from slotlock.infrastructure.redis.keys import lock_keys


class LockRequest(NamedTuple):
    """The name of a lock and the token that is to hold it."""

    name: str
    token: str


class AcquiredLock(NamedTuple):
    """The fencing token of a lock, and whether it was granted to a waiter.

    `next_arrival`: see `RedisLease`.
    """

    fencing_token: int
    was_waiting: bool
    next_arrival: float


def parts_per_script(
    requests: Sequence[LockRequest], *, is_cluster: bool
) -> list[Sequence[LockRequest]]:
    """Return the requests in the parts that one script may process.

    On a Cluster, each lock may be on another node.
    """
    if is_cluster:
        return [[request] for request in requests]
    return [requests] if requests else []


def script_command(script: str, requests: Sequence[LockRequest], arguments: Command) -> Command:
    """Return the command that runs a script on these locks."""
    keys = [key for request in requests for key in lock_keys(request.name)]
    tokens = [request.token for request in requests]
    return ("EVAL", script, len(keys), *keys, *arguments, *tokens)
