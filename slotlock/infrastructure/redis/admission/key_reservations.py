"""The idempotency keys of tickets, each reserved for the request that it was first queued with.

Requests are queued in the partitions of their slots, which do not know the keys of each other.
Redis may lose a reservation: the idempotency record in MongoDB lets only one request of a key have
an effect.
"""

from slotlock.domain.admission.tickets import TICKET_TTL
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import ticket_key

TTL_MS = int(TICKET_TTL.total_seconds() * 1000)

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


class KeyReservations:
    """The reserved keys of all users. Every method raises RedisUnavailableError.

    A key and a request are given by their hashes.
    """

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline

    async def reserve(self, user_id: UserId, key_hash: str, request_hash: str) -> bool:
        """Reserve a key for a request, for a day. Returns False if another request has it."""
        key = ticket_key(user_id, key_hash)
        reserved = await self._pipeline.send("EVAL", RESERVE, 1, key, request_hash, TTL_MS)
        return bool(reserved == request_hash.encode())

    async def is_reserved_for_other(
        self, user_id: UserId, key_hash: str, request_hash: str
    ) -> bool:
        """Return whether a key is reserved for another request."""
        reserved = await self._pipeline.send("GET", ticket_key(user_id, key_hash))
        return reserved not in (None, request_hash.encode())

    async def release(self, user_id: UserId, key_hash: str, request_hash: str) -> None:
        """Let other requests use a key that is reserved for this one."""
        key = ticket_key(user_id, key_hash)
        await self._pipeline.send("EVAL", RELEASE, 1, key, request_hash)
