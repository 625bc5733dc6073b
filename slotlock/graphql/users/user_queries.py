"""Users as clients see them, and the queries that read one's own account and find users."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field
from strawberry.types.base import get_object_definition
from strawberry.utils.str_converters import to_camel_case

from slotlock.auth import accounts, invitations
from slotlock.auth.admin import groups_and_bans
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.users import user
from slotlock.domain.users.groups import clean_groups, parse_group_list, validate_group
from slotlock.domain.users.user import Caller, MailTopic, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_NAME, ListCursors
from slotlock.graphql.core.enums import Role
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.core.node import Node, selected_names
from slotlock.graphql.core.outcomes import Result, register_type
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.core.shared_types import similar_groups_of
from slotlock.services.booking.permissions import find_bookable_users

# What the reference to a user tells without reading the user.
REFERENCE_FIELDS = frozenset({"id", "__typename"})


@strawberry.type(description="What a user signs in with at a provider.")
class SignInIdentity:
    id: strawberry.ID = field(description="The id, for `unlinkSignIn` or `unlinkUserSignIn`.")
    provider: str | None = field(
        description="The id of the provider; null if the site has it no more."
    )
    email: EmailAddress | None = field(
        description="The e-mail address that the provider gave at the last sign-in."
    )
    linked_at: datetime | None = field(
        description="When the user first signed in with it; null after an import, until then."
    )


@strawberry.type(
    description="A user account. Guardians see of a user what the user sees, but not `identities`."
)
class User(Node):
    name: str = field(description="The name of the user. Organizers can change it.")
    family_name: str | None = field(
        description="The part of `name` that a file of users or an organizer gave as the family "
        "name; lists are sorted by it, then by `name`. Null if it is not known."
    )
    email: EmailAddress | None = field(
        description="The e-mail address. Only the user and organizers see it; null for others, and "
        "for an account with a `username`."
    )
    username: str | None = field(
        description="The user name with which the user signs in, if the account has no e-mail "
        "address. Only the user and organizers see it; null for others."
    )
    email_verified: bool | None = field(
        description="Whether the user has shown that they read the mails to `email`. Only the user "
        "and organizers see it; null for others."
    )
    role: Role | None = field(
        description="The rights of the user. Only the user and organizers see them; null for "
        "others."
    )
    groups: list[str] | None = field(
        description="The groups of the user, such as a class, in alphabetical order. Only the user "
        "and organizers see them, and leaders of a slot those of its users; null for others."
    )
    has_password: bool | None = field(
        description="Whether the user has set a password. Only the user and organizers see it; "
        "null for others."
    )
    signs_in_at_provider: bool | None = field(
        description="Whether the user has signed in at a provider (`Site.signInProviders`) and can "
        "do so. Only the user and organizers see it; null for others."
    )
    phone: str | None = field(
        description="The telephone number, if there is one. Only the user and organizers see it; "
        "null for others."
    )
    created_at: datetime | None = field(
        description="When the account was created. Only the user and organizers see it; null for "
        "others."
    )
    locale: str | None = field(
        description="The language of the user as an IETF tag, such as `de` or `zh-Hant`, if they "
        "chose one. Only the user and organizers see it; null for others."
    )
    email_undeliverable_since: datetime | None = field(
        description="Since when the mail server of the user's address rejects mails, if it does. "
        "The user gets no mail until the address changes. Only the user and organizers see it; "
        "null for others."
    )
    wants_reminders: bool | None = field(
        description="Whether the user gets reminders by mail. Only the user and organizers see it; "
        "null for others."
    )
    wants_announcements: bool | None = field(
        description="Whether the user gets announcements by mail: messages of organizers to all, "
        "invitations to teams, and that a campaign will open. Only the user and organizers see it; "
        "null for others."
    )
    erased: bool = field(
        description="Whether the account was erased. `name` is a placeholder then, and past "
        "bookings refer to the user without a name."
    )
    banned: bool | None = field(
        description="Whether the user is banned: they cannot sign in or be booked for. Only "
        "organizers see it; null for others."
    )
    banned_at: datetime | None = field(
        description="When the user was banned. Only organizers see it; null for others."
    )
    ban_reason: str | None = field(
        description="Why the user was banned, if a reason was given. Only organizers see it; null "
        "for others."
    )
    self_registered: bool | None = field(
        description="Whether somebody registered this account, perhaps with the address of another "
        "user: nobody has vouched for the user, claimed the account or verified the address yet. "
        "Only organizers see it; null for others."
    )

    guardian_ids: strawberry.Private[tuple[UserId, ...] | None]

    @field(
        description="The users who act for the user, such as the parents of a child, by id. Only "
        "the user, these guardians and organizers see them; null for others."
    )
    async def guardians(self, info: Info) -> "list[User] | None":
        if self.guardian_ids is None:
            return None
        found = [await load_referenced_user(info, each) for each in sorted(self.guardian_ids)]
        return [each for each in found if each is not None]

    @field(
        description="The users for whom the user acts as a guardian, such as the children of a "
        "parent, by family name and name. Only the user and organizers see them; null for others."
    )
    async def dependents(self, info: Info) -> "list[User] | None":
        caller, user_id = info.context.optional_caller, ids.parse_user_id(self.id)
        if caller is None or user_id is None:
            return None
        if caller.user_id != user_id and not caller.is_organizer:
            return None
        found = await info.context.loaders.dependents.load(user_id)
        return [User.from_domain(each, caller) for each in found or ()]

    @field(description=similar_groups_of("the user is in"))
    async def similar_groups(self, info: Info) -> list[list[str]] | None:
        return await info.context.loaders.similar_groups(self.groups or ())

    @field(
        description="What the user signs in with at providers (`Site.signInProviders`). Only the "
        "user and admins see it; null for others."
    )
    async def identities(self, info: Info) -> list[SignInIdentity] | None:
        caller, user_id = info.context.optional_caller, ids.parse_user_id(self.id)
        if caller is None or user_id is None:
            return None
        if caller.user_id != user_id and caller.role is not user.Role.ADMIN:
            return None
        return [
            SignInIdentity(
                id=strawberry.ID(each.id),
                provider=each.provider_id,
                email=EmailAddress(each.email) if each.email else None,
                linked_at=each.linked_at,
            )
            for each in await info.context.loaders.identities.load(user_id) or ()
        ]

    @field(
        description="Whether the user is the `leader` of a resource, whose slots "
        "`SlotsFilter.ledByMe` finds. Only the user sees it; null for others."
    )
    async def leads_slots(self, info: Info) -> bool | None:
        caller = info.context.optional_caller
        if caller is None or user_global_id(caller.user_id) != self.id:
            return None
        return bool(await info.context.services.resources.find_led(caller.user_id))

    @classmethod
    def from_domain(cls, user: user.User, viewer: Caller | None) -> Self:
        return cls._build(
            user,
            is_self=viewer is not None and viewer.user_id in (user.id, *user.guardians),
            is_organizer=viewer is not None and viewer.is_organizer,
        )

    @classmethod
    def with_groups(cls, user: user.User, viewer: Caller) -> Self:
        """Show a user to somebody who leads one of their slots."""
        shown = cls.from_domain(user, viewer)
        shown.groups = list(user.groups)
        return shown

    @classmethod
    def for_reference(cls, user_id: UserId) -> Self:
        """Show a user of whom only the id is selected. The other attributes are missing."""
        reference = cls.__new__(cls)
        reference.id = user_global_id(user_id)
        return reference

    @classmethod
    def for_self(cls, user: user.User) -> Self:
        """Show a user to themselves."""
        return cls._build(user, is_self=True, is_organizer=user.role.is_organizer)

    @classmethod
    def _build(cls, user: user.User, *, is_self: bool, is_organizer: bool) -> Self:
        sees_account = is_self or is_organizer
        sees_email = sees_account and not user.erased
        return cls(
            id=user_global_id(user.id),
            name=user.name,
            family_name=user.known_family_name,
            email=EmailAddress(user.email) if user.email and sees_email else None,
            username=user.username if sees_account else None,
            email_verified=user.email_verified if sees_account else None,
            role=user.role if sees_account else None,
            groups=list(user.groups) if sees_account else None,
            has_password=user.has_password if sees_account else None,
            signs_in_at_provider=user.signs_in_at_provider if sees_account else None,
            phone=user.phone if sees_account else None,
            created_at=user.created_at if sees_account else None,
            locale=user.locale if sees_account else None,
            email_undeliverable_since=user.undeliverable_since if sees_account else None,
            wants_reminders=user.wants(MailTopic.REMINDERS) if sees_account else None,
            wants_announcements=user.wants(MailTopic.ANNOUNCEMENTS) if sees_account else None,
            erased=user.erased,
            banned=user.banned if is_organizer else None,
            banned_at=user.banned_at if is_organizer else None,
            ban_reason=user.ban_reason if is_organizer else None,
            self_registered=user.self_registered if is_organizer else None,
            guardian_ids=user.guardians if sees_account else None,
        )


# What only a user that was read shows.
USER_FIELDS = (
    frozenset(to_camel_case(each.name) for each in get_object_definition(User, strict=True).fields)
    - REFERENCE_FIELDS
)

register_type(user.User, User, lambda outcome, view: User.from_domain(outcome, view.viewer))

UPDATE_ME = Result[accounts.UpdateMeOutcome]("UpdateMeResult", "The user as changed, or a refusal.")
SET_GROUPS = Result[groups_and_bans.SetGroupsOutcome](
    "SetGroupsResult", "The user with the new groups, or a refusal."
)
VOUCH_FOR_USER = Result[groups_and_bans.VouchOutcome](
    "VouchForUserResult", "The user, or a refusal."
)
BAN_USER = Result[groups_and_bans.BanOutcome]("BanUserResult", "The banned user, or a refusal.")
UNBAN_USER = Result[groups_and_bans.UnbanOutcome](
    "UnbanUserResult", "The unbanned user, or a refusal."
)


async def load_user(info: Info, user_id: UserId) -> User | None:
    """Load a user as the viewer may see them."""
    user = await info.context.loaders.user(user_id)
    return User.from_domain(user, info.context.viewer) if user else None


async def load_referenced_user(
    info: Info, user_id: UserId, *, shows_groups: bool = False
) -> User | None:
    """Load a user to whom stored data refers, and who therefore exists, unless the id is enough."""
    if selected_names(info) <= REFERENCE_FIELDS:
        return User.for_reference(user_id)
    if not shows_groups:
        return await load_user(info, user_id)
    found = await info.context.loaders.user(user_id)
    return User.with_groups(found, info.context.caller) if found else None


@strawberry.type(description="A group that users have, such as a class.")
class UserGroup:
    name: str = field(description="The name of the group.")
    user_count: int = field(
        description="How many users have the group, also organizers, admins and banned users."
    )


USERS = ListCursors("users", BY_NAME, lambda found: found.sort_name)
BOOKABLE_USERS = ListCursors("bookableUsers", BY_NAME, lambda found: found.sort_name)
USER_GROUPS = ListCursors("userGroups", BY_NAME, lambda found: found.name)
MAX_SEARCH_LENGTH = 200

UserConnection = Connection[User]


@strawberry.input(description="The users to find. A field that is left out matches every user.")
class UserFilter:
    text: str | None = field(
        default=None,
        description="Words or prefixes of words that all occur in the name, the e-mail address or "
        "the user name. Capitals, accents and variants of characters do not matter. Of scripts "
        "without blanks, such as Chinese or Thai, and of Korean, any part of the text counts as a "
        "word.",
    )
    group: str | None = field(
        default=None,
        description="Only users of this group, or of one of several with commas between them.",
    )
    banned: bool | None = field(default=None, description="Only users who are or are not banned.")
    without_password: bool | None = field(
        default=None,
        description="Only users without a password, or only users with one. A child that never "
        "signs in is in neither list if it has guardians. With `group`, `true` also finds the "
        "guardians of its users, as invitations do.",
    )
    self_registered: bool | None = field(
        default=None,
        description="Only users who are or are not `selfRegistered`.",
    )

    campaign_id: strawberry.ID | None = field(
        default=None,
        description="Only users who may book in this campaign; with `withoutPassword`, `true` also "
        "finds their guardians.",
    )

    def to_domain(self) -> user.UserFilter:
        """Convert the filter to the domain's, but the campaign. Errors: BAD_USER_INPUT."""
        text = strip_blanks(self.text or "")
        groups = strip_blanks(self.group or "")
        group = parse_group_list(groups) if groups else None
        if isinstance(group, Problem):
            raise bad_input("group", f"`group`: {group}")
        if len(text) > MAX_SEARCH_LENGTH:
            raise bad_input("text", f"`text` has at most {MAX_SEARCH_LENGTH} characters.")
        return user.UserFilter(
            text or None, group, self.banned, self.without_password, self.self_registered
        )


UserFilterArgument = Annotated[UserFilter | None, argument(description="The users to find.")]


@strawberry.type(description="The user whose password a token sets.")
class TokenOwner:
    name: str = field(description="The name of the user.")
    email: EmailAddress | None = field(
        description="The e-mail address to sign in with; null for an account with a `username`."
    )
    username: str | None = field(
        description="The user name to sign in with; null for an account with an address."
    )


@strawberry.type
class UserQueries:
    @field(
        description="Whose password a token of `setPassword` or `resetPassword` sets, so that a "
        "page can say so; null if the token is not valid any more. Everybody may read it."
    )
    async def token_owner(
        self,
        info: Info,
        token: Annotated[str, argument(description="The token of the invitation or of the reset.")],
    ) -> TokenOwner | None:
        owner = await invitations.find_owner(info.context.auth, token)
        if owner is None:
            return None
        email = EmailAddress(owner.email) if owner.email else None
        return TokenOwner(name=owner.name, email=email, username=owner.username)

    @field(description="The account of the caller, or null for an anonymous client.")
    async def me(self, info: Info) -> User | None:
        caller = info.context.optional_caller
        found = await info.context.loaders.user(caller.user_id) if caller else None
        return User.for_self(found) if found else None

    @field(
        description="The users that match a filter, by family name as far as it is known, and then "
        "by name. Organizers only."
    )
    async def users(
        self,
        info: Info,
        filter: UserFilterArgument = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UserConnection:
        organizer, sent = info.context.require_organizer(), filter or UserFilter()
        wanted = sent.to_domain()
        if sent.campaign_id is not None:
            campaign_id = ids.parse_campaign_id(sent.campaign_id)
            campaign = campaign_id and await info.context.loaders.campaigns.load(campaign_id)
            if not campaign:
                raise bad_input("campaignId", "There is no such campaign.")
            wanted = replace(wanted, eligible_groups=campaign.terms.eligible_groups)
        page = await groups_and_bans.list_users(
            info.context.auth,
            wanted,
            *page_start(USERS, first, after),
        )
        return UserConnection.of_page(
            page, lambda found: User.from_domain(found, organizer), USERS, after
        )

    @field(
        description="The users whom the caller may book in a slot that they lead, by family name "
        "and name, each with their groups: those of the `leaderGroups` of its campaign. Only "
        "leaders of the slot can read them; an organizer books everyone."
    )
    async def bookable_users(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot that the caller leads.")],
        text: Annotated[
            str | None, argument(description="Words or parts of words that all occur in the name.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UserConnection:
        parsed_id, wanted = ids.parse_slot_id(slot_id), UserFilter(text=text).to_domain()
        leader = await info.context.require_leader(parsed_id)
        page = await find_bookable_users(
            info.context.services,
            leader,
            parsed_id,
            wanted.text,
            *page_start(BOOKABLE_USERS, first, after),
        )
        return UserConnection.of_page(
            page, lambda found: User.with_groups(found, leader), BOOKABLE_USERS, after
        )

    @field(description="The groups that users have, by name. Organizers only.")
    async def user_groups(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> Connection[UserGroup]:
        info.context.require_organizer()
        page = await groups_and_bans.list_groups(
            info.context.auth, *page_start(USER_GROUPS, first, after)
        )
        return Connection[UserGroup].of_page(
            page,
            lambda found: UserGroup(name=found.name, user_count=found.user_count),
            USER_GROUPS,
            after,
        )


def require_valid_group(text: str | None) -> str | None:
    """Return the group in its stored form, or None for no group. Errors: BAD_USER_INPUT."""
    group = next(iter(clean_groups([text or ""])), None)
    if group and (problem := validate_group(group)):
        raise bad_input("group", f"`group`: {problem}")
    return group
