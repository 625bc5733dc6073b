"""The context of one operation: its caller, its client, the services and the data loaders."""

import asyncio
from functools import cached_property

import msgspec
import strawberry
from strawberry.dataloader import DataLoader

from slotlock.auth.authentication import recheck_caller
from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.graphql.check_in_codes import to_qr_svg
from slotlock.graphql.core import ids
from slotlock.graphql.core.dataloaders import DataLoaders
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.services.booking.permissions import is_guardian, with_led_slots
from slotlock.services.container import Services

# A caller, an anonymous client, or the reason why a token was rejected. The reason is raised only
# by fields that need an identity: a client with an expired token must still be able to refresh it.
Identity = Caller | BadTokenError | None


@value_object
class ClientInfo:
    """The client program: the address that rate limits count, and its user agent."""

    address: str | None = None
    user_agent: str | None = None


UNKNOWN_CLIENT = ClientInfo()


@value_object
class SiteSettings:
    """What the settings alone say of the site.

    `public_url` is what addresses begin with, such as https://example.org/slotlock; empty for
    relative ones. `board_url` is what links in mails begin with; empty without links.
    """

    public_url: str = ""
    developers_url: str | None = None
    logs_errors: bool = False
    require_verified_email: bool = False
    webhook_private_addresses: bool = False
    board_url: str = ""


DEFAULT_SITE = SiteSettings()


class Context(msgspec.Struct, eq=False, dict=True):
    """The context of one operation. Two operations never share one."""

    services: Services
    auth: Auth
    _rate_limits: OperationRateLimits
    _identity: Identity
    client: ClientInfo
    public_reads: bool
    site: SiteSettings = DEFAULT_SITE
    _loaders: DataLoaders | None = None

    def fork(self) -> "Context":
        """Return a context without loaded data, for the next event of a subscription."""
        return Context(
            self.services,
            self.auth,
            self._rate_limits,
            self._identity,
            self.client,
            self.public_reads,
            self.site,
        )

    def without_caller(self) -> "Context":
        """Return a context of nobody, for a response that many clients read."""
        return Context(
            self.services,
            self.auth,
            self._rate_limits,
            None,
            UNKNOWN_CLIENT,
            self.public_reads,
            self.site,
        )

    async def recheck_session(self) -> None:
        """Check the caller's session again and forget loaded data: both may have changed."""
        if isinstance(self._identity, Caller):
            try:
                self._identity = await recheck_caller(self.auth, self._identity)
            except BadTokenError as error:
                self._identity = error
        self._loaders = None

    async def charge(self, kind: OperationKind, count: int) -> None:
        """Charge more operations of this kind to the rate limits of the caller and the address.

        Raises:
            RateLimitedError: the caller or the address has reached a limit.
        """
        user_id = self._identity.user_id if isinstance(self._identity, Caller) else None
        charge = self._rate_limits.charge({kind: count}, user_id, self.client.address)
        await self._rate_limits.wait(charge)

    async def refund(self, kind: OperationKind) -> None:
        """Return one operation of this kind to the rate limits of the caller and the address."""
        user_id = self._identity.user_id if isinstance(self._identity, Caller) else None
        await self._rate_limits.refund(kind, user_id, self.client.address)

    @property
    def loaders(self) -> DataLoaders:
        """The data loaders. Errors: UNAUTHENTICATED, as `viewer`."""
        if self._loaders is None:
            self._loaders = DataLoaders(self.services, self.auth, self.viewer)
        return self._loaders

    @cached_property
    def qr_codes(self) -> DataLoader[tuple[str, str], str]:
        """The loader of QR codes by text and title. Errors: RATE_LIMITED.

        A code takes about as long as a read, and counts as one.
        """
        return DataLoader(self._draw_qr_codes)

    async def _draw_qr_codes(self, texts: list[tuple[str, str]]) -> list[str]:
        await self.charge(OperationKind.READ, len(texts))
        images = []
        for text, title in texts:
            images.append(to_qr_svg(text, title))
            # A thread would take the interpreter for 5 ms at each system call of the event loop.
            await asyncio.sleep(0)
        return images

    @property
    def caller(self) -> Caller:
        """The signed-in caller. Errors: UNAUTHENTICATED."""
        if isinstance(self._identity, BadTokenError):
            raise GraphQLRequestError(ErrorCode.UNAUTHENTICATED, str(self._identity))
        if self._identity is None:
            raise GraphQLRequestError(ErrorCode.UNAUTHENTICATED, "Please sign in first.")
        return self._identity

    @property
    def optional_caller(self) -> Caller | None:
        """The caller, or None for an anonymous client. Errors: UNAUTHENTICATED for a bad token."""
        return None if self._identity is None else self.caller

    @property
    def viewer(self) -> Caller | None:
        """The reader of public data. Errors: UNAUTHENTICATED, also if public reads are off."""
        if isinstance(self._identity, Caller):
            return self._identity
        return self.optional_caller if self.public_reads else self.caller

    def to_url(self, path: str) -> str:
        """Return the address of a path of this server, absolute if its public address is set."""
        return self.site.public_url + path

    def require_organizer(self) -> Caller:
        """Return the caller if they are an organizer. Errors: UNAUTHENTICATED, FORBIDDEN."""
        caller = self.caller
        if not caller.is_organizer:
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, "Only organizers may do this.")
        return caller

    async def require_leader(self, *slot_ids: SlotId | None) -> Caller:
        """Return the caller, an organizer or with those of the slots that they lead.

        They have to lead the first that is not None. A slot that does not exist is like those of
        others. Errors: UNAUTHENTICATED, FORBIDDEN.
        """
        caller, named = self.caller, [slot_id for slot_id in slot_ids if slot_id is not None]
        if caller.is_organizer:
            return caller
        caller = await with_led_slots(self.services, caller, named)
        if not named or named[0] not in caller.leads:
            message = "Only organizers may do this, and those who lead the slot."
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, message)
        return caller

    async def caller_for(self, user_id: str) -> Caller:
        """Return the caller as one of their dependents, to read what that user reads.

        A user who does not exist is like those of others. Errors: UNAUTHENTICATED, FORBIDDEN.
        """
        caller, parsed_id = self.caller, ids.parse_user_id(user_id)
        if parsed_id == caller.user_id:
            return caller
        dependent = caller.as_dependent(parsed_id or UserId(""))
        if parsed_id is None or await self.has_lost(dependent):
            message = "Only the user may read this, and their guardians."
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, message)
        return dependent

    async def has_lost(self, caller: Caller) -> bool:
        """Return whether a caller reads for a user whose guardian they are not, or not any more."""
        guardian_id = caller.actor_id
        return guardian_id is not None and not await is_guardian(
            self.services, guardian_id, caller.user_id
        )

    def require_admin(self) -> Caller:
        """Return the caller if they are an admin. Errors: UNAUTHENTICATED, FORBIDDEN."""
        caller = self.caller
        if caller.role is not Role.ADMIN:
            raise GraphQLRequestError(ErrorCode.FORBIDDEN, "Only admins may do this.")
        return caller


Info = strawberry.Info[Context, None]
