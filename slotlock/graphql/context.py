"""What an operation knows: who asks, the desk, and loaders that live as long as it does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import strawberry
from strawberry.dataloader import DataLoader

from slotlock.auth.authentication import reauthenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import SessionInfo, list_sessions
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.booking.booking import SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import Slot
from slotlock.domain.users.user import Caller, User, UserId
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.services.container import Services
from slotlock.services.slots import queries

# A caller, nobody in particular, or somebody whose token is no good. The last is told only to
# those who need to know who asks, so that an old token does not keep a client from refreshing it.
Identity = Caller | BadTokenError | None


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """The program that asks: where from, as it is counted, and what it calls itself."""

    address: str | None = None
    user_agent: str | None = None


UNKNOWN_CLIENT = ClientInfo()


class Context:
    """One operation's surroundings; never shared between operations."""

    def __init__(
        self,
        services: Services,
        auth: Auth,
        rate_limits: OperationRateLimits,
        identity: Identity,
        client: ClientInfo,
        *,
        public_reads: bool,
    ) -> None:
        self.services = services
        self.auth = auth
        self._rate_limits = rate_limits
        self.client = client
        self._identity = identity
        self._public_reads = public_reads
        self.users: DataLoader[UserId, User | None] = DataLoader(self._load_users)
        self.slots: DataLoader[SlotId, Slot | None] = DataLoader(self._load_slots)
        self.waitlists: DataLoader[SlotId, Sequence[WaitlistEntryId]] = DataLoader(
            self._load_waitlists
        )
        # Of the caller, the only one who sees any.
        self.sessions: DataLoader[UserId, Sequence[SessionInfo]] = DataLoader(self._load_sessions)

    def fork(self) -> "Context":
        """The same for the next event of a subscription: what was loaded may have changed."""
        return Context(
            self.services,
            self.auth,
            self._rate_limits,
            self._identity,
            self.client,
            public_reads=self._public_reads,
        )

    async def reauthenticate(self) -> None:
        """Find out anew who asks, and forget what was loaded: either may have changed."""
        if isinstance(self._identity, Caller):
            try:
                self._identity = await reauthenticate(self.auth, self._identity)
            except BadTokenError as error:
                self._identity = error
        self.users.clear_all()
        self.slots.clear_all()
        self.waitlists.clear_all()
        self.sessions.clear_all()

    async def refund(self, kind: OperationKind) -> None:
        """Take one that came to nothing out of the rates again."""
        person = self._identity.user_id if isinstance(self._identity, Caller) else None
        await self._rate_limits.refund(kind, person, self.client.address)

    @property
    def caller(self) -> Caller:
        """Who asks. Errors: UNAUTHENTICATED."""
        if isinstance(self._identity, BadTokenError):
            raise GraphQLRequestError(ErrorCode.UNAUTHENTICATED, str(self._identity))
        if self._identity is None:
            raise GraphQLRequestError(ErrorCode.UNAUTHENTICATED, "Please sign in first.")
        return self._identity

    @property
    def viewer(self) -> Caller | None:
        """Who reads what anybody may read, unless the settings keep it to those signed in."""
        return self.optional_caller if self._public_reads else self.caller

    @property
    def optional_caller(self) -> Caller | None:
        """Who asks, or None for nobody in particular. Errors: UNAUTHENTICATED for a bad token."""
        return None if self._identity is None else self.caller

    @property
    def require_organizer(self) -> Caller:
        """Who keeps slots. Errors: UNAUTHENTICATED, FORBIDDEN."""
        if not self.caller.is_organizer:
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, "Only organisers may do this.")
        return self.caller

    async def _load_slots(self, slot_ids: list[SlotId]) -> Sequence[Slot | None]:
        found = await queries.find_slots(self.services, slot_ids, self.viewer)
        return [found.get(slot_id) for slot_id in slot_ids]

    async def _load_sessions(self, user_ids: list[UserId]) -> Sequence[Sequence[SessionInfo]]:
        return [await list_sessions(self.auth, self.caller) for _ in user_ids]

    async def _load_users(self, user_ids: list[UserId]) -> Sequence[User | None]:
        found = await self.services.users.find_many(user_ids)
        return [found.get(user_id) for user_id in user_ids]

    async def _load_waitlists(self, slot_ids: list[SlotId]) -> Sequence[Sequence[WaitlistEntryId]]:
        return await asyncio.gather(*map(self.services.slots.waitlist_ids, slot_ids))


Info = strawberry.Info[Context, None]
