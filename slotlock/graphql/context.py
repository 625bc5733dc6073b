"""What an operation knows: who asks, the desk, and loaders that live as long as it does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import strawberry
from strawberry.dataloader import DataLoader

from slotlock.auth.auth import Auth
from slotlock.auth.identity import identify_again
from slotlock.auth.own_sessions import OwnSession, list_sessions
from slotlock.auth.tokens import BadTokenError
from slotlock.desk import reading
from slotlock.desk.desk import Desk
from slotlock.domain.bookings import SlotId, WaitId
from slotlock.domain.people import Caller, User, UserId
from slotlock.domain.slots import Slot
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.kinds import Kind
from slotlock.graphql.rates import Rates

# A caller, nobody in particular, or somebody whose token is no good. The last is told only to
# those who need to know who asks, so that an old token does not keep a client from refreshing it.
Identity = Caller | BadTokenError | None


@dataclass(frozen=True, slots=True)
class Client:
    """The program that asks: where from, as it is counted, and what it calls itself."""

    address: str | None = None
    agent: str | None = None


UNKNOWN = Client()


class Context:
    """One operation's surroundings; never shared between operations."""

    def __init__(
        self,
        desk: Desk,
        auth: Auth,
        rates: Rates,
        identity: Identity,
        client: Client,
        *,
        public_reads: bool,
    ) -> None:
        self.desk = desk
        self.auth = auth
        self._rates = rates
        self.client = client
        self._identity = identity
        self._public_reads = public_reads
        self.users: DataLoader[UserId, User | None] = DataLoader(self._load_users)
        self.slots: DataLoader[SlotId, Slot | None] = DataLoader(self._load_slots)
        self.lines: DataLoader[SlotId, Sequence[WaitId]] = DataLoader(self._load_lines)
        # Of the caller, the only one who sees any.
        self.sessions: DataLoader[UserId, Sequence[OwnSession]] = DataLoader(self._load_sessions)

    def afresh(self) -> "Context":
        """The same for the next event of a subscription: what was loaded may have changed."""
        return Context(
            self.desk,
            self.auth,
            self._rates,
            self._identity,
            self.client,
            public_reads=self._public_reads,
        )

    async def look_again(self) -> None:
        """Find out anew who asks, and forget what was loaded: either may have changed."""
        if isinstance(self._identity, Caller):
            try:
                self._identity = await identify_again(self.auth, self._identity)
            except BadTokenError as error:
                self._identity = error
        self.users.clear_all()
        self.slots.clear_all()
        self.lines.clear_all()
        self.sessions.clear_all()

    async def give_back(self, kind: Kind) -> None:
        """Take one that came to nothing out of the rates again."""
        person = self._identity.user_id if isinstance(self._identity, Caller) else None
        await self._rates.give_back(kind, person, self.client.address)

    @property
    def caller(self) -> Caller:
        """Who asks. Errors: UNAUTHENTICATED."""
        if isinstance(self._identity, BadTokenError):
            raise RefusedError(Code.UNAUTHENTICATED, str(self._identity))
        if self._identity is None:
            raise RefusedError(Code.UNAUTHENTICATED, "Please sign in first.")
        return self._identity

    @property
    def reader(self) -> Caller | None:
        """Who reads what anybody may read, unless the settings keep it to those signed in."""
        return self.known_caller if self._public_reads else self.caller

    @property
    def known_caller(self) -> Caller | None:
        """Who asks, or None for nobody in particular. Errors: UNAUTHENTICATED for a bad token."""
        return None if self._identity is None else self.caller

    @property
    def organiser(self) -> Caller:
        """Who keeps slots. Errors: UNAUTHENTICATED, FORBIDDEN."""
        if not self.caller.organises:
            raise RefusedError(Code.FORBIDDEN, "Only organisers may do this.")
        return self.caller

    async def _load_slots(self, slot_ids: list[SlotId]) -> Sequence[Slot | None]:
        found = await reading.find_slots(self.desk, slot_ids, self.reader)
        return [found.get(slot_id) for slot_id in slot_ids]

    async def _load_sessions(self, user_ids: list[UserId]) -> Sequence[Sequence[OwnSession]]:
        return [await list_sessions(self.auth, self.caller) for _ in user_ids]

    async def _load_users(self, user_ids: list[UserId]) -> Sequence[User | None]:
        found = await self.desk.users.by_ids(user_ids)
        return [found.get(user_id) for user_id in user_ids]

    async def _load_lines(self, slot_ids: list[SlotId]) -> Sequence[Sequence[WaitId]]:
        return await asyncio.gather(*map(self.desk.slots.line, slot_ids))


Info = strawberry.Info[Context, None]
