"""How much may be asked in a minute, by a person and by an address.

An address may ask as much as many people, since a whole school can be behind one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import Counter

from slotlock.domain.people import UserId
from slotlock.graphql.errors import RateLimitedError
from slotlock.graphql.kinds import Kind
from slotlock.stores.local_rates import LocalRates
from slotlock.stores.rate_limits import Limit, RateLimits, Verb, Want
from slotlock.stores.redis import RedisAwayError

# A minute, of one person. Subscriptions begin again, ten a socket, when a connection comes back.
SIGN_INS = 30  # each hashes a password; and as many acts that end sessions
ATTEMPTS = 600  # to sign in, whether or not a password is hashed; and as many tokens
SUBSCRIPTIONS = 200
# Kilobytes of documents that were not seen lately. A client has few; each costs up to 10 ms a kB.
DOCUMENTS, DOCUMENTS_PER_ADDRESS = 300, 6_000
# Whatever is in them: some are there at once, others keep a process busy for seconds.
FILES = 60
# What is counted without Redis: people do these who are not signed in, or they cost a hash.
ALWAYS = frozenset({Kind.SIGN_IN, Kind.ATTEMPT, Kind.REDEEM, Kind.LEAVE})

UNCHECKED = Counter(
    "slotlock_rate_limit_unchecked_total", "Times that a rate was not looked at: Redis was away"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted for one operation, and the answer of Redis."""

    wants: Sequence[Want]
    answer: asyncio.Future[int]


class Rates:
    """The limits of this deployment; without counts there are none."""

    def __init__(
        self, counts: RateLimits | None, reads: int, writes: int, people_per_address: int
    ) -> None:
        self._counts = counts
        self._local = LocalRates()
        most: dict[Kind, int] = {
            Kind.READ: reads,
            Kind.WRITE: writes,
            Kind.SUBSCRIBE: SUBSCRIPTIONS,
            **dict.fromkeys((Kind.SIGN_IN, Kind.LEAVE), SIGN_INS),
            **dict.fromkeys((Kind.ATTEMPT, Kind.REDEEM), ATTEMPTS),
            Kind.DOCUMENT: DOCUMENTS,
            Kind.FILE: FILES,
        }
        # A thief elsewhere must not keep a person from ending the session that was stolen.
        self._of_person: dict[Kind, Limit] = {
            kind: Limit(kind.value, n) for kind, n in most.items() if kind is not Kind.LEAVE
        }
        # Files are organisers': nobody else can use up what their address may.
        self._of_address: dict[Kind, Limit] = {
            kind: Limit(kind.value, n * people_per_address)
            for kind, n in most.items()
            if kind is not Kind.FILE
        }
        # Reading them is the one thing that a person can make dear: not so often as for many.
        self._of_address[Kind.DOCUMENT] = Limit(Kind.DOCUMENT.value, DOCUMENTS_PER_ADDRESS)

    def ask(
        self, weights: Mapping[Kind, int], person: UserId | None, address: str | None
    ) -> Asked | None:
        """Ask whether there is room for an operation; it is under way when this returns."""
        if self._counts is None:
            return None
        wants = self._wants(weights, person, address)
        return Asked(wants, self._counts.ask(wants)) if wants else None

    def _wants(
        self, weights: Mapping[Kind, int], person: UserId | None, address: str | None
    ) -> Sequence[Want]:
        return [
            (f"{what}:{who}", limits[kind], weight)
            for what, who, limits in (
                ("person", person, self._of_person),
                ("address", address, self._of_address),
            )
            if who is not None
            for kind, weight in weights.items()
            if kind in limits
        ]

    async def give_back(self, kind: Kind, person: UserId | None, address: str | None) -> None:
        """Count one less: it was refused before it cost what others of its kind do."""
        wants = self._wants({kind: 1}, person, address)
        if self._counts is None or not wants:
            return
        try:
            await self._counts.ask(wants, Verb.GIVE_BACK)
        except RedisAwayError:
            self._local.ask(wants, Verb.GIVE_BACK)

    async def allow(self, asked: Asked | None) -> None:
        """Wait until it is known that there is room. Errors: RateLimitedError."""
        if asked is not None and (wait_ms := await self._wait_ms(asked)):
            raise RateLimitedError(wait_ms)

    async def _wait_ms(self, asked: Asked) -> int:
        """When there is room, in ms from now; 0: there is. While Redis is away there is.

        Except for sign-ins and their like, which this process then counts alone.
        """
        try:
            return await asked.answer
        except RedisAwayError:
            always = [want for want in asked.wants if want[1].name in ALWAYS]
            if len(always) < len(asked.wants):
                UNCHECKED.inc()
            return self._local.ask(always)
