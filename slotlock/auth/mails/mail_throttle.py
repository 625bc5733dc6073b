"""Limits on mails that anybody can cause: codes for addresses, links for passwords, and notices.

A mail is counted once, and only if there is one: requests that lead to no mail use up nothing that
a mail needs. Mails that the pace of a client delays wait in the outbox, in the order of arrival. An
account that was signed in to from an address waits there for nobody (`KnownAddresses`).
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from itertools import product

from prometheus_client import Counter

from slotlock.auth.login_throttle import LoginThrottle
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.redis.paces import Pace, Paces
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateCharge, RateLimit

# Mails to one address, and of one account. A link is valid longer than users wait for a mail.
PER_RECIPIENT = (RateLimit("mail-hour", 5, 3600), RateLimit("mail-day", 20, 24 * 3600))
# Mails to addresses that nobody verified, and that nobody answers. A code that comes back is
# refunded: a school that registers is not limited, a stranger who uses the server for spam is.
PER_CLIENT = (RateLimit("strangers-hour", 1000, 3600), RateLimit("strangers-day", 3000, 24 * 3600))
PER_SITE = (RateLimit("strangers-hour", 3000, 3600), RateLimit("strangers-day", 10_000, 24 * 3600))
# What a client requests leaves so fast: 900 mails in a quarter of an hour, and never more at once.
PACE = Pace("mail-pace", interval_ms=1000, burst=10, max_delay_ms=15 * 60 * 1000)


class MailPurpose(StrEnum):
    """What an account mail is for; each has limits of its own. The values are parts of keys."""

    FIRST_CODE = "first-code"
    CODE = "code"
    RESET = "reset"
    NOTICE = "notice"


class MailFate(StrEnum):
    """What became of a request for a mail."""

    QUEUED = "queued"
    DELAYED = "delayed"
    REFUSED = "refused"


ACCOUNT_MAILS = Counter(
    "slotlock_account_mails_total",
    "Requests for codes and links by mail, by what became of them",
    ["purpose", "outcome"],
)
for _purpose, _fate in product(MailPurpose, MailFate):
    ACCOUNT_MAILS.labels(_purpose.value, _fate.value)  # which shows zero, instead of nothing


@value_object
class MailTime:
    """When a mail leaves, from now on; None if there is none before `retry_after_ms`."""

    delay: timedelta | None = timedelta()
    retry_after_ms: int = 0


@value_object
class ResetRequest:
    """A request for a link, and from where; if `retry_after_ms` is not 0, there is no mail."""

    client_address: str | None
    is_known: bool
    retry_after_ms: int


class MailThrottle:
    """Counts account mails in Redis; while Redis is unavailable, each process counts its own."""

    def __init__(self, logins: LoginThrottle, paces: Paces) -> None:
        self._logins = logins
        self._paces = paces

    async def count_reset_request(
        self, login_name: str, client_address: str | None
    ) -> ResetRequest:
        """Count a request for a link to an address, whether or not it has an account.

        Requests from elsewhere use up nothing at an address where the account was signed in to.
        """
        is_known, delay_ms = await asyncio.gather(
            self._logins.is_known(login_name, client_address),
            self._delay_ms(MailPurpose.RESET, client_address, is_taken=False),
        )
        recipient = f"{login_name} {client_address}" if is_known else login_name
        wait_ms = 0 if is_known else max(delay_ms - PACE.max_delay_ms, 0)
        wait_ms = wait_ms or await self._logins.charge(
            self._recipient_charges(MailPurpose.RESET, recipient), ChargeMode.CHARGE
        )
        if wait_ms:
            _record(MailPurpose.RESET, MailFate.REFUSED)
        return ResetRequest(client_address, is_known, wait_ms)

    async def admit_reset(self, user: User | None, request: ResetRequest) -> MailTime:
        """Admit the link of a request. The commands are the same if there is no user, or no mail.

        An address that somebody registered, and nobody verified, may be that of a stranger.
        """
        may_be_stranger = user is not None and user.self_registered
        return await self._admit(
            MailPurpose.RESET,
            _stranger_charges(request.client_address),
            request.client_address,
            is_counted=may_be_stranger,
            is_paced=may_be_stranger or (user is not None and not request.is_known),
            is_recorded=user is not None,
        )

    async def admit_code(
        self, user_id: UserId, email: str, client_address: str | None, *, is_first: bool
    ) -> MailTime:
        """Admit a mail with a code to an address, which may be that of a stranger.

        Other mails to the address, which others may request, use up nothing of a first one.
        """
        purpose = MailPurpose.FIRST_CODE if is_first else MailPurpose.CODE
        charges = [
            *self._recipient_charges(purpose, user_id),
            *self._recipient_charges(purpose, email),
            *_stranger_charges(client_address, is_first=is_first),
        ]
        return await self._admit(purpose, charges, client_address)

    async def admit_notice(self, user_id: UserId, client_address: str | None) -> MailTime:
        """Admit a mail about a change of an account whose address may be that of a stranger."""
        charges = [
            *self._recipient_charges(MailPurpose.NOTICE, user_id),
            *_stranger_charges(client_address),
        ]
        return await self._admit(MailPurpose.NOTICE, charges, client_address)

    async def refund_answered(self, client_address: str | None, *, is_first: bool) -> None:
        """Uncount a mail whose code came back from a client: its address is not a stranger's."""
        charges = _stranger_charges(client_address, is_first=is_first)
        await self._logins.charge(charges, ChargeMode.REFUND)

    async def _admit(
        self,
        purpose: MailPurpose,
        charges: Sequence[RateCharge],
        client_address: str | None,
        *,
        is_counted: bool = True,
        is_paced: bool = True,
        is_recorded: bool = True,
    ) -> MailTime:
        mode = ChargeMode.CHARGE if is_counted else ChargeMode.PEEK
        wait_ms = await self._logins.charge(charges, mode)
        if is_counted and wait_ms:
            return _refused(purpose, wait_ms)
        delay_ms = await self._delay_ms(purpose, client_address, is_taken=is_paced)
        # The response to a request for a link has promised it: those of one second all leave.
        if is_paced and delay_ms > PACE.max_delay_ms and purpose is not MailPurpose.RESET:
            if is_counted:
                await self._logins.charge(charges, ChargeMode.REFUND)
            return _refused(purpose, delay_ms - PACE.max_delay_ms)
        if not is_paced:
            delay_ms = 0
        if is_recorded:
            _record(purpose, MailFate.DELAYED if delay_ms else MailFate.QUEUED)
        return MailTime(timedelta(milliseconds=delay_ms))

    async def _delay_ms(
        self, purpose: MailPurpose, client_address: str | None, *, is_taken: bool
    ) -> int:
        if client_address is None:
            return 0
        subject = f"address:{client_address}"
        return await self._paces.reserve(f"{purpose}:{subject}", PACE, is_taken=is_taken)

    def _recipient_charges(self, purpose: MailPurpose, to: str) -> Sequence[RateCharge]:
        subject = f"mail:{self._logins.hash_of(f'{purpose} {to}')}"
        return [(subject, limit, 1) for limit in PER_RECIPIENT]


def _stranger_charges(
    client_address: str | None, *, is_first: bool = False
) -> Sequence[RateCharge]:
    """Return what counts a mail. A first code counts by itself: other mails use up nothing of it.

    A few accounts can cause many other mails.
    """
    kind = "first-" if is_first else ""
    charges = [(f"{kind}site", limit, 1) for limit in PER_SITE]
    if client_address is not None:
        charges += [(f"{kind}address:{client_address}", limit, 1) for limit in PER_CLIENT]
    return charges


def _refused(purpose: MailPurpose, wait_ms: int) -> MailTime:
    _record(purpose, MailFate.REFUSED)
    return MailTime(None, wait_ms)


def _record(purpose: MailPurpose, fate: MailFate) -> None:
    ACCOUNT_MAILS.labels(purpose.value, fate.value).inc()
