"""From where an account was signed in to lately: a hint in Redis, which may forget it.

    slotlock:{familiar:<account>}:<address>    there for 30 days after each sign-in

Both parts are keyed hashes: who reads Redis learns neither who signs in nor from where.
"""

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError

KNOWN_ADDRESS_TTL_S = 30 * 24 * 3600


class KnownAddresses:
    """The addresses of all accounts."""

    def __init__(self, pipeline: AutoPipeline) -> None:
        self._pipeline = pipeline

    async def is_known(self, account: str, address: str) -> bool:
        """Whether this account was signed in to from there; not while Redis is away."""
        try:
            return bool(await self._pipeline.send("EXISTS", _key(account, address)))
        except RedisUnavailableError:
            return False

    def remember(self, account: str, address: str) -> None:
        """Remember a sign-in; not waited for."""
        self._pipeline.send("SET", _key(account, address), 1, "EX", KNOWN_ADDRESS_TTL_S)


def _key(account: str, address: str) -> str:
    return f"slotlock:{{familiar:{account}}}:{address}"
