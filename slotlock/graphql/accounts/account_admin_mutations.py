"""Mutations with which organizers and admins manage accounts: create, edit, erase, end sessions."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.auth.admin import account_admin, account_claims
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.users import user
from slotlock.domain.users.account_admin_rules import (
    AccountHoldsPlaces,
    CannotEraseSelf,
    LastAdmin,
)
from slotlock.graphql.accounts.sessions import END_CALENDAR_FEED, RETAIN_SIGN_INS
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import to_change, to_required_change
from slotlock.graphql.core.enums import Role
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id, register_type
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.user_queries import User
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.services.admission import held_places
from slotlock.services.erasure import finish_erasure


@strawberry.type(description="The user was erased.")
class UserErased:
    user: User | None = field(
        description="What is left: a placeholder to which past bookings refer."
    )


EraseUserOutcome = UserErased | UserNotFound | CannotEraseSelf | LastAdmin

register_type(UserErased, UserErased, lambda shown, _view: shown)

SEND_MAIL = (
    "Whether the user also gets the invitation in a mail, if the account has an e-mail address and "
    "the server sends mail. A user gets one a day."
)
GUARDIANS = (
    "The users who act for this one, such as the parents of a child: at most 2, who have no "
    "guardians themselves, each of at most 20 users. Only members have guardians."
)
CREATE_USER = Result[account_admin.CreateUserOutcome](
    "CreateUserResult", "The new user, or a refusal."
)
INVITE_USER = Result[account_admin.InviteUserOutcome](
    "InviteUserResult", "The invitation, or a refusal."
)
RESET_PASSWORD = Result[account_admin.ResetPasswordOutcome](
    "CreatePasswordResetResult", "The token, or a refusal."
)
UPDATE_USER = Result[account_admin.UpdateUserOutcome](
    "UpdateUserResult", "The changed user, or a refusal."
)
SET_USER_ROLE = Result[account_admin.SetRoleOutcome](
    "SetUserRoleResult", "The user with the new role, or a refusal."
)
END_USER_SESSIONS = Result[account_admin.EndSessionsOutcome](
    "EndUserSessionsResult", "The ended sessions, or a refusal."
)
CLAIM_USER = Result[account_claims.ClaimUserOutcome](
    "ClaimUserResult", "The claimed account, or a refusal."
)
ERASE_USER = Result[EraseUserOutcome]("EraseUserResult", "The erased user, or a refusal.")


@strawberry.input(description="The account to create for somebody else.")
class CreateUserInput:
    name: str = field(
        description="The name of the user, 1 to 100 characters. `Winter, Ute` is Ute Winter, whom "
        "lists have by the family name."
    )
    email: EmailAddress | None = field(
        default=None, description="The e-mail address to sign in with."
    )
    groups: list[str] = field(
        default_factory=list,
        description="The groups of the user: at most 20, each a line of 1 to 50 characters without "
        "`,` `;` and `*`.",
    )
    role: Role = field(
        default=user.Role.MEMBER,
        description="The rights of the user. Only admins create organizers and admins.",
    )
    username: str | None = field(
        default=None,
        description="The user name to sign in with, if the account has no e-mail address. "
        "1 to 100 characters without blanks and `@`; capitals do not matter.",
    )
    send_mail: bool = field(default=False, description=SEND_MAIL)
    guardian_ids: list[strawberry.ID] = field(
        default_factory=list,
        description=f"{GUARDIANS} A user with guardians needs no e-mail address and no user name, "
        "and gets no invitation then.",
    )


@strawberry.input(description="The changes of a user. Null leaves a name or an address unchanged.")
class UpdateUserInput:
    user_id: strawberry.ID = field(description="The user to change.")
    name: str | None = field(
        default=None, description="The new name, 1 to 100 characters, also as `Winter, Ute`."
    )
    email: EmailAddress | None = field(
        default=None,
        description="The new e-mail address, with which the user signs in.",
    )
    username: str | None = field(
        default=None,
        description="The user name with which the user signs in from now on, instead of the old "
        "one or of an e-mail address.",
    )
    phone: str | None = field(
        default=UNSET,
        description="The telephone number, at most 40 digits, spaces and `+-()/.`; null or an "
        "empty text to remove it. It does not change if it is left out.",
    )
    guardian_ids: list[strawberry.ID] | None = field(
        default=UNSET,
        description=f"{GUARDIANS} An empty list removes them. They do not change if it is left "
        "out.",
    )


CreateUserArgument = Annotated[CreateUserInput, argument(description="The account to create.")]
UpdateUserArgument = Annotated[UpdateUserInput, argument(description="The user and the changes.")]


@strawberry.type
class AccountAdminMutations:
    @CREATE_USER.mutation(
        "Create an account without a password, and an invitation with which its user "
        "sets one. Organizers create members, admins create every role. `SelfRegistered` if nobody "
        "has vouched for a guardian. `DEPENDENT_EXISTS` if a guardian acts for a user with this "
        "name already, and one of both has no login name: a repeated request creates no second "
        "one."
    )
    async def create_user(self, info: Info, input: CreateUserArgument) -> object:
        organizer = info.context.require_organizer()
        guardians, malformed = _parse_guardians(input.guardian_ids)
        if malformed is not None:
            return refuse_id(UserNotFound, malformed)
        outcome = await account_admin.create_invited_user(
            info.context.auth,
            organizer,
            input.name,
            input.email,
            input.groups,
            input.role,
            input.username,
            by_mail=input.send_mail,
            guardians=guardians,
        )
        return CREATE_USER.present(outcome, ResultView(organizer))

    @INVITE_USER.mutation(
        "Invite one user who has no password to set one, for example after a change of "
        "the e-mail address. Organizers invite members, admins invite everyone."
    )
    async def invite_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to invite.")],
        send_mail: Annotated[bool, argument(description=SEND_MAIL)] = False,
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await account_admin.invite(
            info.context.auth, organizer, parsed_id, by_mail=send_mail
        )
        return INVITE_USER.present(outcome, ResultView(organizer))

    @RESET_PASSWORD.mutation(
        "Create a token with which another user replaces a forgotten password, once and within an "
        "hour. The sessions of the user end when it is used. Admins only."
    )
    async def create_password_reset(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user who needs a password.")],
    ) -> object:
        admin = info.context.require_admin()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await account_admin.reset_password(info.context.auth, admin, parsed_id)
        return RESET_PASSWORD.present(outcome, ResultView(admin))

    @UPDATE_USER.mutation(
        "Change the name, the telephone, the guardians, the e-mail address or the user name of a "
        "user. A new address ends the user's invitation and reset tokens. Organizers change "
        "members and themselves, admins change everyone. `AdminRequired` if an organizer gives "
        "another address or user name to an account that `hasPassword` or `signsInAtProvider`. "
        "Admins change their own address with `changeEmail`, if the server sends mails. "
        "`DEPENDENT_EXISTS` as for `createUser`."
    )
    async def update_user(self, info: Info, input: UpdateUserArgument) -> object:
        organizer = info.context.require_organizer()
        if (user_id := ids.parse_user_id(input.user_id)) is None:
            return refuse_id(UserNotFound, input.user_id)
        guardian_ids = to_required_change("guardianIds", input.guardian_ids)
        guardians: tuple[user.UserId, ...] | Unchanged = UNCHANGED
        if not isinstance(guardian_ids, Unchanged):
            guardians, malformed = _parse_guardians(guardian_ids)
            if malformed is not None:
                return refuse_id(UserNotFound, malformed)
        outcome = await account_admin.update_user(
            info.context.auth,
            organizer,
            user_id,
            input.name,
            input.email,
            input.username,
            to_change(input.phone),
            guardians,
        )
        return UPDATE_USER.present(outcome, ResultView(organizer))

    @SET_USER_ROLE.mutation(
        "Set the role of a user, also in their open sessions. Their open streams end. "
        "The last admin cannot lose the role, and a user with guardians stays a member. Admins "
        "only."
    )
    async def set_user_role(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to change.")],
        role: Annotated[Role, argument(description="The new rights of the user.")],
    ) -> object:
        admin = info.context.require_admin()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await account_admin.set_role(info.context.auth, admin, parsed_id, role)
        return SET_USER_ROLE.present(outcome, ResultView(admin))

    @END_USER_SESSIONS.mutation(
        "End all sessions of another user at once, with their streams and sockets. The "
        "user can sign in again. Organizers do this to members, admins to everyone."
    )
    async def end_user_sessions(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to sign out.")],
        retain_sign_ins: Annotated[bool, argument(description=RETAIN_SIGN_INS)] = False,
        end_calendar_feed: Annotated[bool, argument(description=END_CALENDAR_FEED)] = False,
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await account_admin.end_sessions(
            info.context.auth,
            organizer,
            parsed_id,
            end_calendar_feed=end_calendar_feed,
            retain_sign_ins=retain_sign_ins,
        )
        return END_USER_SESSIONS.present(outcome, ResultView(organizer))

    @CLAIM_USER.mutation(
        "Claim an account that somebody registered (`User.selfRegistered`) for the user of its "
        "address. The password, the sessions, the calendar feed, the sign-ins at providers and the "
        "teams of the account end. Its user is invited to set a password. If the server sends "
        "mail, only a mail to the address has the token. A claim that failed can be repeated. "
        "Admins only."
    )
    async def claim_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The account to claim.")],
        cancel_places: Annotated[
            bool | None,
            argument(
                description="Whether the bookings, waiting list entries, queued requests and "
                "wishes in draws of the account are cancelled. Without it, an account that has "
                "some is not claimed (`AccountHoldsPlaces`)."
            ),
        ] = None,
    ) -> object:
        admin, context = info.context.require_admin(), info.context
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        found = await account_claims.find_claimable(context.auth, parsed_id)
        if not isinstance(found, user.User):
            return CLAIM_USER.present(found, ResultView(admin))
        if cancel_places is None:
            held = await held_places.find(context.services, parsed_id)
            if not held.is_empty:
                return CLAIM_USER.present(AccountHoldsPlaces.of(held), ResultView(admin))
        locked = await account_claims.lock(context.auth, parsed_id)
        if not isinstance(locked, user.User):
            return CLAIM_USER.present(locked, ResultView(admin))
        with after_write():
            if cancel_places:
                held = await held_places.cancel_all(context.services, parsed_id, admin)
                left = await held_places.find(context.services, parsed_id)
                if not left.is_empty:  # a slot was locked: the admin repeats the claim
                    return CLAIM_USER.present(AccountHoldsPlaces.of(left), ResultView(admin))
            else:
                held = await held_places.find(context.services, parsed_id)
            outcome = await account_claims.invite(context.auth, admin, parsed_id, held)
        return CLAIM_USER.present(outcome, ResultView(admin))

    @ERASE_USER.mutation(
        "Erase a user: the account, sessions, calendar feed, teams and waiting list "
        "entries vanish, and bookings of slots that have not started are cancelled. Past bookings "
        "stay without a name. This cannot be undone; erasing again continues an erasure that was "
        "interrupted. Admins only."
    )
    async def erase_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to erase.")],
    ) -> object:
        admin = info.context.require_admin()
        if (parsed_id := ids.parse_user_id(user_id)) is None:
            return refuse_id(UserNotFound, user_id)
        outcome = await account_admin.erase_account(info.context.auth, admin, parsed_id)
        if isinstance(outcome, Erasure):
            await finish_erasure(info.context.services, outcome)
            erased = await info.context.loaders.user(parsed_id)
            return UserErased(user=User.from_domain(erased, admin) if erased else None)
        return ERASE_USER.present(outcome, ResultView(admin))


def _parse_guardians(
    global_ids: Sequence[str],
) -> tuple[tuple[user.UserId, ...], str | None]:
    """Return the ids of guardians, each once, and the first that is malformed."""
    parsed = {each: ids.parse_user_id(each) for each in global_ids}
    malformed = next((sent for sent, id_ in parsed.items() if id_ is None), None)
    return tuple(id_ for id_ in parsed.values() if id_ is not None), malformed
