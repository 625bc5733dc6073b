"""How often a password may be guessed: for an account from one address, for it at all, from there.

Nobody can keep a person out for good by failing on purpose: from where they signed in lately only
the attempts made there count.
"""

import asyncio
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.local_rate_limits import InProcessRateLimiter
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit, RateLimiter

# Attempts at an account from one address, until one succeeds there.
PER_ACCOUNT_AND_ADDRESS = RateLimit("here", 10, 15 * 60)
# Attempts at an account from addresses that are not familiar, successful ones included. NIST SP
# 800-63B, 5.2.2, has a hundred in a row as the most.
PER_ACCOUNT = (RateLimit("hour", 50, 3600), RateLimit("day", 100, 24 * 3600))
# Failures at an address, which a whole school may share.
PER_ADDRESS = RateLimit("failures", 3000, 15 * 60)


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One attempt at an account. When `wait_ms` is not 0, it must not be made before."""

    retry_after_ms: int
    charges: Sequence[RateCharge] = ()
    account_hash: str = ""
    client_address: str | None = None
    account_and_address_hash: str = ""


class LoginThrottle:
    """Counts attempts to sign in; without counts it lets all be made.

    While Redis is away each process counts for itself.
    """

    def __init__(
        self,
        rate_limiter: RateLimiter | None = None,
        known_addresses: KnownAddresses | None = None,
        hmac_key: bytes = b"",
    ) -> None:
        self._rate_limiter = rate_limiter
        self._known_addresses = known_addresses
        self._local_limiter = InProcessRateLimiter()
        self._hmac_key = hmac_key

    async def start_attempt(self, email: str | None, client_address: str | None) -> LoginAttempt:
        """Begin an attempt at the account of a normalised address; None is an account of nobody."""
        if self._rate_limiter is None or self._known_addresses is None:
            return LoginAttempt(0)
        account, here = self._hash(email or ""), self._hash(f"{email} {client_address}")
        familiar, wait_ms = await asyncio.gather(
            self._known_addresses.is_known(account, here),
            self._charge(_address_charges(client_address), ChargeMode.PEEK),
        )
        wants = [] if email is None else [(f"sign-in:{here}", PER_ACCOUNT_AND_ADDRESS, 1)]
        if email is not None and not familiar:
            wants += [(f"sign-in:{account}", limit, 1) for limit in PER_ACCOUNT]
        # Where the person is at home others may be, too, and must not keep them out.
        wait_ms = (0 if familiar else wait_ms) or await self._charge(wants, ChargeMode.CHARGE)
        return LoginAttempt(wait_ms, wants, account, client_address, here)

    async def record_failure(self, attempt: LoginAttempt) -> None:
        """It was a wrong password, or no account to begin with."""
        await self._charge(_address_charges(attempt.client_address), ChargeMode.CHARGE)

    async def refund(self, attempt: LoginAttempt) -> None:
        """It was not made after all."""
        await self._charge(attempt.charges, ChargeMode.REFUND)

    def record_success(self, attempt: LoginAttempt) -> None:
        """It was the right password: what failed from here before was the same person."""
        if self._rate_limiter is not None and self._known_addresses is not None and attempt.charges:
            self._known_addresses.remember(attempt.account_hash, attempt.account_and_address_hash)
            self._rate_limiter.reset(
                f"sign-in:{attempt.account_and_address_hash}", PER_ACCOUNT_AND_ADDRESS
            )
            self._local_limiter.reset(
                f"sign-in:{attempt.account_and_address_hash}", PER_ACCOUNT_AND_ADDRESS
            )

    async def _charge(self, charges: Sequence[RateCharge], mode: ChargeMode) -> int:
        if self._rate_limiter is None or not charges:
            return 0
        try:
            return await self._rate_limiter.charge(charges, mode)
        except RedisUnavailableError:
            return self._local_limiter.charge(charges, mode)

    def _hash(self, text: str) -> str:
        return hmac.digest(self._hmac_key, text.encode(errors="surrogatepass"), "sha256").hex()[:32]


def _address_charges(client_address: str | None) -> Sequence[RateCharge]:
    return [] if client_address is None else [(f"address:{client_address}", PER_ADDRESS, 1)]
