"""From where an account was signed in to lately: a hint in Redis, which may forget it.

    slotlock:{familiar:<account>}:<address>    there for 30 days after each sign-in

Both parts are keyed hashes: who reads Redis learns neither who signs in nor from where.
"""

from slotlock.stores.redis import RedisAwayError, RedisLine

KNOWN_FOR_S = 30 * 24 * 3600


class FamiliarAddresses:
    """The addresses of all accounts."""

    def __init__(self, line: RedisLine) -> None:
        self._line = line

    async def know(self, account: str, address: str) -> bool:
        """Whether this account was signed in to from there; not while Redis is away."""
        try:
            return bool(await self._line.send("EXISTS", _key(account, address)))
        except RedisAwayError:
            return False

    def note(self, account: str, address: str) -> None:
        """Remember a sign-in; not waited for."""
        self._line.send("SET", _key(account, address), 1, "EX", KNOWN_FOR_S)


def _key(account: str, address: str) -> str:
    return f"slotlock:{{familiar:{account}}}:{address}"
