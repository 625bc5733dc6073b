"""Limits on password guesses: for an account from one address, for an account, for an address.

An attacker who fails on purpose cannot lock users out for good. At an address where the user logged
in within the last 30 days, only the attempts from that address count.
"""

import asyncio
import hmac
from collections.abc import Sequence

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.rate_limits import (
    ChargeMode,
    InProcessRateLimiter,
    RateCharge,
    RateLimit,
    RateLimiter,
)

# Attempts on an account from one address since the last success there.
PER_ACCOUNT_AND_ADDRESS = RateLimit("account-address", 10, 15 * 60)
# Attempts on an account from unknown addresses, successful ones included. NIST SP 800-63B, 5.2.2,
# allows at most 100 consecutive failures.
PER_ACCOUNT = (RateLimit("hour", 50, 3600), RateLimit("day", 100, 24 * 3600))
# Failed attempts from one address, which all users of a school may share.
PER_ADDRESS = RateLimit("failures", 3000, 15 * 60)


@value_object
class LoginAttempt:
    """One login attempt; if `retry_after_ms` is not 0, the password must not be checked."""

    retry_after_ms: int
    charges: Sequence[RateCharge] = ()
    account_hash: str = ""
    client_address: str | None = None
    account_and_address_hash: str = ""
    # Whether the account was signed in to from the address.
    is_known: bool = False


class LoginThrottle:
    """Counts login attempts in Redis; while Redis is unavailable, each process counts its own."""

    def __init__(
        self, rate_limiter: RateLimiter, known_addresses: KnownAddresses, hmac_key: bytes
    ) -> None:
        self._rate_limiter = rate_limiter
        self._known_addresses = known_addresses
        self._local_limiter = InProcessRateLimiter()
        self._hmac_key = hmac_key

    async def start_attempt(
        self, login_name: str | None, client_address: str | None
    ) -> LoginAttempt:
        """Count an attempt on the account of a normalized login name; None names no account."""
        account, account_and_address = self._account_hashes(login_name, client_address)
        is_known, wait_ms = await asyncio.gather(
            self._known_addresses.is_known(account, account_and_address),
            self.charge(_address_charges(client_address), ChargeMode.PEEK),
        )
        charges: list[RateCharge] = []
        if login_name is not None:
            charges.append((_login_subject(account_and_address), PER_ACCOUNT_AND_ADDRESS, 1))
            if not is_known:
                charges += [(_login_subject(account), limit, 1) for limit in PER_ACCOUNT]
        # Failures of other users at the same address must not lock out a user who is known there.
        if wait_ms == 0 or is_known:
            wait_ms = await self.charge(charges, ChargeMode.CHARGE)
        return LoginAttempt(
            wait_ms, charges, account, client_address, account_and_address, is_known
        )

    async def record_failure(self, attempt: LoginAttempt) -> None:
        """Count a wrong password, or an account that does not exist."""
        await self.charge(_address_charges(attempt.client_address), ChargeMode.CHARGE)

    async def refund(self, attempt: LoginAttempt) -> None:
        """Uncount an attempt whose password was not checked."""
        await self.charge(attempt.charges, ChargeMode.REFUND)

    def record_success(self, attempt: LoginAttempt) -> None:
        """Remember the address as known, and forget the failures on the account from there."""
        if not attempt.charges:
            return
        self._known_addresses.remember(attempt.account_hash, attempt.account_and_address_hash)
        subject = _login_subject(attempt.account_and_address_hash)
        self._rate_limiter.reset(subject, PER_ACCOUNT_AND_ADDRESS)
        self._local_limiter.reset(subject, PER_ACCOUNT_AND_ADDRESS)

    async def is_known(self, login_name: str, client_address: str | None) -> bool:
        """Return whether somebody signed in to the account of a login name from an address."""
        account, account_and_address = self._account_hashes(login_name, client_address)
        return await self._known_addresses.is_known(account, account_and_address)

    async def charge(self, charges: Sequence[RateCharge], mode: ChargeMode) -> int:
        """Charge all or none, as `RateLimiter` does, whether or not Redis is available."""
        if not charges:
            return 0
        try:
            return await self._rate_limiter.charge(charges, mode)
        except RedisUnavailableError:
            return self._local_limiter.charge(charges, mode)

    def _account_hashes(
        self, login_name: str | None, client_address: str | None
    ) -> tuple[str, str]:
        return self.hash_of(login_name or ""), self.hash_of(f"{login_name} {client_address}")

    def hash_of(self, text: str) -> str:
        """Return what stands for a text in Redis."""
        return hmac.digest(self._hmac_key, text.encode(errors="surrogatepass"), "sha256").hex()[:32]


def _login_subject(subject_hash: str) -> str:
    return f"login:{subject_hash}"


def _address_charges(client_address: str | None) -> Sequence[RateCharge]:
    return [] if client_address is None else [(f"address:{client_address}", PER_ADDRESS, 1)]
