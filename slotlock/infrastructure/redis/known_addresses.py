"""The addresses from which an account was signed in to within 30 days, a hint that may be lost.

Accounts and addresses are keyed hashes, so a reader of Redis learns neither.
"""

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import known_address_key

KNOWN_ADDRESS_TTL_S = 30 * 24 * 3600


class KnownAddresses:
    """The known addresses of all accounts."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline

    async def is_known(self, account_hash: str, address_hash: str) -> bool:
        """Return whether the account was signed in to from there; False if Redis is unavailable."""
        try:
            key = known_address_key(account_hash, address_hash)
            return bool(await self._pipeline.send("EXISTS", key))
        except RedisUnavailableError:
            return False

    def remember(self, account_hash: str, address_hash: str) -> None:
        """Store the address of a sign-in, without waiting."""
        key = known_address_key(account_hash, address_hash)
        self._pipeline.send("SET", key, 1, "EX", KNOWN_ADDRESS_TTL_S)
