"""The tickets of each user in Redis, of whatever partition: an index, and reserved keys.

The index is a sorted set for each user: `<slot><key><request hash>` by the time of the request in
ms. It lies on another node of a Cluster than the queue, so it is written by a command of its own.
It may miss a ticket, which its id still finds.

Requests are queued in the partitions of their slots, which do not know the keys of each other. Each
idempotency key is therefore reserved for the request that it was first queued with. Redis may lose
a reservation: the idempotency record in MongoDB lets only one request of a key have an effect.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.admission.tickets import TICKET_TTL, TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher, chunked
from slotlock.infrastructure.redis.admission.admission_queue import (
    from_milliseconds,
    to_milliseconds,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import ticket_index_key, ticket_key

# A user with more tickets misses the oldest.
MAX_TICKETS = 1_000
TTL_MS = int(TICKET_TTL.total_seconds()) * 1000

_MEMBER = re.compile(r"([0-9a-f]{24})([0-9a-f]{32})([0-9a-f]{16})", re.ASCII)

# KEYS: the index of each ticket. ARGV: the maximum length, the time to live in ms, then for each
# ticket the time in ms and the member.
_ADD = """
for n, key in ipairs(KEYS) do
  redis.call('zadd', key, ARGV[2 * n + 1], ARGV[2 * n + 2])
  redis.call('zremrangebyrank', key, 0, -ARGV[1] - 1)
  redis.call('pexpire', key, ARGV[2])
end
"""
# Redis executes nothing else meanwhile.
_MAX_ADDED_AT_ONCE = 200

# KEYS: the index. ARGV: the bound of the times in ms. Returns each member, followed by its time. As
# a plain command, clients return it in different forms.
_FIND = "return redis.call('zrange', KEYS[1], '+inf', ARGV[1], 'byscore', 'rev', 'withscores')"

# ARGV of each script: request hash; to reserve, also the time to live in ms.
# Returns the hash of the request that has the key.
RESERVE = """
local reserved = redis.call('get', KEYS[1])
if reserved then return reserved end
redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
"""

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class TicketIndex:
    """Finds the tickets of a user."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline
        self._added: list[TicketRef] = []

    def add(self, ref: TicketRef) -> None:
        """Add a ticket, without waiting. A ticket of the same key replaces the older one."""
        if not self._added:
            # Requests that were enqueued together are added together.
            asyncio.get_running_loop().call_soon(self._send_added)
        self._added.append(ref)

    def _send_added(self) -> None:
        refs, self._added = self._added, []
        # On a Cluster, each index may be on another node.
        batch_size = 1 if self._pipeline.is_cluster else _MAX_ADDED_AT_ONCE
        for batch in chunked(refs, batch_size):
            keys = [ticket_index_key(ref.requested_by) for ref in batch]
            arguments: list[str | int] = [MAX_TICKETS, TTL_MS]
            for ref in batch:
                member = f"{ref.slot_id}{ref.key_hash}{ref.request_hash}"
                arguments += (to_milliseconds(ref.requested_at), member)
            self._pipeline.run_script(_ADD, keys, *arguments)

    def delete(self, user_id: UserId) -> None:
        """Delete the index of a user's tickets, without waiting."""
        self._pipeline.send("DEL", ticket_index_key(user_id))

    async def count(self, user_id: UserId, since: datetime) -> int:
        """Return the number of tickets that `find` returns.

        Raises:
            RedisUnavailableError: the index cannot be read.
        """
        key, since_ms = ticket_index_key(user_id), to_milliseconds(since)
        found: int = await self._pipeline.send("ZCOUNT", key, f"({since_ms}", "+inf")
        return found

    async def find(self, user_id: UserId, since: datetime) -> Sequence[TicketRef]:
        """Return the tickets that a user requested after `since`, the newest first.

        Raises:
            RedisUnavailableError: the index cannot be read.
        """
        key, since_ms = ticket_index_key(user_id), to_milliseconds(since)
        found = await self._pipeline.run_script(_FIND, [key], f"({since_ms}")
        return [
            TicketRef(SlotId(match[1]), user_id, match[2], match[3], from_milliseconds(int(ms)))
            for member, ms in zip(found[::2], found[1::2], strict=True)
            if (match := _MEMBER.fullmatch(member.decode()))
        ]


class KeyReservations:
    """The reserved keys of all users. Every method raises RedisUnavailableError.

    A key and a request are given by their hashes.
    """

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline
        self._batcher = Batcher(self.find_each)

    async def reserve(self, user_id: UserId, key_hash: str, request_hash: str) -> bool:
        """Reserve a key for a request, for a day. Returns False if another request has it."""
        key = ticket_key(user_id, key_hash)
        reserved = await self._pipeline.run_script(RESERVE, [key], request_hash, TTL_MS)
        return bool(reserved == request_hash.encode())

    async def find(self, user_id: UserId, key_hash: str) -> str | None:
        """Return the request that has a key, or None."""
        return await self._batcher.submit((user_id, key_hash))

    async def find_each(self, keys: Sequence[tuple[UserId, str]]) -> list[str | None]:
        """Return the request that has each key, or None."""
        names = [ticket_key(user_id, key_hash) for user_id, key_hash in keys]
        if self._pipeline.is_cluster:  # the keys lie on several nodes
            found = await asyncio.gather(*(self._pipeline.send("GET", name) for name in names))
        else:
            found = await self._pipeline.send("MGET", *names)
        return [reserved and reserved.decode() for reserved in found]

    async def release(self, user_id: UserId, key_hash: str, request_hash: str) -> None:
        """Let other requests use a key that is reserved for this one."""
        key = ticket_key(user_id, key_hash)
        await self._pipeline.run_script(RELEASE, [key], request_hash)
