"""How often a password may be guessed: for an account from one address, for it at all, from there.

Nobody can keep a person out for good by failing on purpose: from where they signed in lately only
the attempts made there count.
"""

import asyncio
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from slotlock.stores.familiar_addresses import FamiliarAddresses
from slotlock.stores.local_rates import LocalRates
from slotlock.stores.rate_limits import Limit, RateLimits, Verb, Want
from slotlock.stores.redis import RedisAwayError

# Attempts at an account from one address, until one succeeds there.
HERE = Limit("here", 10, 15 * 60)
# Attempts at an account from addresses that are not familiar, successful ones included. NIST SP
# 800-63B, 5.2.2, has a hundred in a row as the most.
ANYWHERE = (Limit("hour", 50, 3600), Limit("day", 100, 24 * 3600))
# Failures at an address, which a whole school may share.
FAILURES = Limit("failures", 3000, 15 * 60)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at an account. When `wait_ms` is not 0, it must not be made before."""

    wait_ms: int
    wants: Sequence[Want] = ()
    account: str = ""
    address: str | None = None
    here: str = ""


class Throttle:
    """Counts attempts to sign in; without counts it lets all be made.

    While Redis is away each process counts for itself.
    """

    def __init__(
        self,
        counts: RateLimits | None = None,
        familiar: FamiliarAddresses | None = None,
        key: bytes = b"",
    ) -> None:
        self._counts = counts
        self._familiar = familiar
        self._local = LocalRates()
        self._key = key

    async def attempt(self, email: str | None, address: str | None) -> Attempt:
        """Begin an attempt at the account of a normalised address; None is an account of nobody."""
        if self._counts is None or self._familiar is None:
            return Attempt(0)
        account, here = self._hash(email or ""), self._hash(f"{email} {address}")
        familiar, wait_ms = await asyncio.gather(
            self._familiar.know(account, here), self._ask(_failures(address), Verb.LOOK)
        )
        wants = [] if email is None else [(f"sign-in:{here}", HERE, 1)]
        if email is not None and not familiar:
            wants += [(f"sign-in:{account}", limit, 1) for limit in ANYWHERE]
        # Where the person is at home others may be, too, and must not keep them out.
        wait_ms = (0 if familiar else wait_ms) or await self._ask(wants, Verb.ADD)
        return Attempt(wait_ms, wants, account, address, here)

    async def failed(self, attempt: Attempt) -> None:
        """It was a wrong password, or no account to begin with."""
        await self._ask(_failures(attempt.address), Verb.ADD)

    async def withdrawn(self, attempt: Attempt) -> None:
        """It was not made after all."""
        await self._ask(attempt.wants, Verb.GIVE_BACK)

    def succeeded(self, attempt: Attempt) -> None:
        """It was the right password: what failed from here before was the same person."""
        if self._counts is not None and self._familiar is not None and attempt.wants:
            self._familiar.note(attempt.account, attempt.here)
            self._counts.forget(f"sign-in:{attempt.here}", HERE)
            self._local.forget(f"sign-in:{attempt.here}", HERE)

    async def _ask(self, wants: Sequence[Want], verb: Verb) -> int:
        if self._counts is None or not wants:
            return 0
        try:
            return await self._counts.ask(wants, verb)
        except RedisAwayError:
            return self._local.ask(wants, verb)

    def _hash(self, text: str) -> str:
        return hmac.digest(self._key, text.encode(errors="surrogatepass"), "sha256").hex()[:32]


def _failures(address: str | None) -> Sequence[Want]:
    return [] if address is None else [(f"address:{address}", FAILURES, 1)]
