"""Mutations with which organizers and admins manage accounts: create, edit, erase, end sessions."""

from datetime import datetime
from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts
from slotlock.auth.administration import account_admin
from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.domain.users import administration, user
from slotlock.graphql.accounts.refusals import EmailTaken
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.enums import Role
from slotlock.graphql.core.refusals import InvalidInput, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.refusals import (
    AdminRequired,
    CannotEraseSelf,
    LastAdmin,
    UserNotFound,
)
from slotlock.graphql.users.types import User
from slotlock.infrastructure.mongo.users.erasures import Erasure
from slotlock.services.users.erasure import finish_erasure


@strawberry.type(description="A new account whose user has no password yet.")
class UserCreated:
    user: User = field(description="The new user.")
    invitation_token: str = field(
        description="The token with which the user sets their first password (`setPassword`). Only "
        "this response contains it."
    )
    invitation_expires_at: datetime = field(description="When the token expires.")


@strawberry.type(description="A user without a password was invited to set one.")
class UserInvited:
    user: User = field(description="The invited user.")
    invitation_token: str = field(
        description="The token with which the user sets their first password (`setPassword`). Only "
        "this response contains it, and earlier tokens no longer work."
    )
    invitation_expires_at: datetime = field(description="When the token expires.")


@strawberry.type(description="The user was changed.")
class UserUpdated:
    user: User = field(description="The changed user.")


@strawberry.type(description="All sessions of the user ended, with their streams and sockets.")
class UserSessionsEnded:
    user: User = field(description="The user, who can sign in again.")
    ended_sessions: int = field(description="How many sessions were open.")


@strawberry.type(description="The user was erased.")
class UserErased:
    user: User | None = field(
        description="What is left: a placeholder to which past bookings refer."
    )


CreateUserResult = Annotated[
    UserCreated | EmailTaken | AdminRequired | InvalidInput,
    strawberry.union("CreateUserResult", description="The new user, or a refusal."),
]
InviteUserResult = Annotated[
    UserInvited | UserNotFound | AdminRequired | InvalidInput,
    strawberry.union("InviteUserResult", description="The invitation, or a refusal."),
]
UpdateUserResult = Annotated[
    UserUpdated | UserNotFound | EmailTaken | AdminRequired | InvalidInput,
    strawberry.union("UpdateUserResult", description="The changed user, or a refusal."),
]
SetUserRoleResult = Annotated[
    User | UserNotFound | LastAdmin,
    strawberry.union("SetUserRoleResult", description="The user with the new role, or a refusal."),
]
EndUserSessionsResult = Annotated[
    UserSessionsEnded | UserNotFound | AdminRequired,
    strawberry.union("EndUserSessionsResult", description="The ended sessions, or a refusal."),
]
EraseUserResult = Annotated[
    UserErased | UserNotFound | CannotEraseSelf | LastAdmin,
    strawberry.union("EraseUserResult", description="The erased user, or a refusal."),
]


@strawberry.input(description="The account to create for somebody else.")
class CreateUserInput:
    name: str = field(description="The name of the user, 1 to 100 characters.")
    email: EmailAddress = field(description="The e-mail address to sign in with.")
    groups: list[str] = field(
        default_factory=list,
        description="The groups of the user: at most 20, each a line of 1 to 50 characters without "
        "`,` `;` and `*`.",
    )
    role: Role = field(
        default=user.Role.MEMBER,
        description="The rights of the user. Only admins create organizers and admins.",
    )


@strawberry.input(description="The new name and address of a user. Null leaves a field unchanged.")
class UpdateUserInput:
    user_id: strawberry.ID = field(description="The user to change.")
    name: str | None = field(default=None, description="The new name, 1 to 100 characters.")
    email: EmailAddress | None = field(
        default=None,
        description="The new e-mail address, with which the user signs in.",
    )


CreateUserArgument = Annotated[CreateUserInput, argument(description="The account to create.")]
UpdateUserArgument = Annotated[UpdateUserInput, argument(description="The user and the changes.")]


@strawberry.type
class UserAdministrationMutations:
    @field(
        description="Create an account without a password, and an invitation with which its user "
        "sets one. Organizers create members, admins create every role.",
        graphql_type=CreateUserResult,
    )
    async def create_user(self, info: Info, input: CreateUserArgument) -> UserCreated | Refusal:  # noqa: A002
        organizer = info.context.require_organizer()
        outcome = await account_admin.create_invited_user(
            info.context.auth, organizer, input.name, input.email, input.groups, input.role
        )
        if isinstance(outcome, account_admin.UserCreated):
            return UserCreated(
                user=User.from_domain(outcome.user, organizer),
                invitation_token=outcome.invitation.token,
                invitation_expires_at=outcome.invitation.expires_at,
            )
        return _present(outcome, ResultView(organizer))

    @field(
        description="Invite one user who has no password to set one, for example after a change of "
        "the e-mail address. Organizers invite members, admins invite everyone.",
        graphql_type=InviteUserResult,
    )
    async def invite_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to invite.")],
    ) -> UserInvited | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await account_admin.invite(info.context.auth, organizer, parsed_id)
        if isinstance(outcome, account_admin.UserInvited):
            return UserInvited(
                user=User.from_domain(outcome.user, organizer),
                invitation_token=outcome.invitation.token,
                invitation_expires_at=outcome.invitation.expires_at,
            )
        return _present(outcome, ResultView(organizer))

    @field(
        description="Change the name or the e-mail address of a user. A new address ends the "
        "user's invitation and reset tokens. Organizers change members and themselves, admins "
        "change everyone.",
        graphql_type=UpdateUserResult,
    )
    async def update_user(self, info: Info, input: UpdateUserArgument) -> UserUpdated | Refusal:  # noqa: A002
        organizer = info.context.require_organizer()
        user_id = ids.parse_user_id(input.user_id)
        if user_id is None:
            return UserNotFound.for_id(input.user_id)
        outcome = await account_admin.update_user(
            info.context.auth, organizer, user_id, input.name, input.email
        )
        if isinstance(outcome, account_admin.UserUpdated):
            return UserUpdated(user=User.from_domain(outcome.user, organizer))
        return _present(outcome, ResultView(organizer))

    @field(
        description="Set the role of a user, also in their open sessions. Their open streams end. "
        "The last admin cannot lose the role. Admins only.",
        graphql_type=SetUserRoleResult,
    )
    async def set_user_role(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to change.")],
        role: Annotated[Role, argument(description="The new rights of the user.")],
    ) -> User | Refusal:
        admin = info.context.require_admin()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await account_admin.set_role(info.context.auth, admin, parsed_id, role)
        if isinstance(outcome, user.User):
            return User.from_domain(outcome, admin)
        return _present(outcome, ResultView(admin))

    @field(
        description="End all sessions of another user at once, with their streams and sockets. The "
        "user can sign in again. Organizers do this to members, admins to everyone.",
        graphql_type=EndUserSessionsResult,
    )
    async def end_user_sessions(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to sign out.")],
    ) -> UserSessionsEnded | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await account_admin.end_sessions(info.context.auth, organizer, parsed_id)
        if isinstance(outcome, account_admin.SessionsEnded):
            return UserSessionsEnded(
                user=User.from_domain(outcome.user, organizer),
                ended_sessions=outcome.ended_sessions,
            )
        return _present(outcome, ResultView(organizer))

    @field(
        description="Erase a user: the account, sessions, calendar feed, teams and waiting list "
        "entries vanish, and bookings of slots that have not started are cancelled. Past bookings "
        "stay without a name. This cannot be undone; erasing again continues an erasure that was "
        "interrupted. Admins only.",
        graphql_type=EraseUserResult,
    )
    async def erase_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to erase.")],
    ) -> UserErased | Refusal:
        admin = info.context.require_admin()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await account_admin.erase_account(info.context.auth, admin, parsed_id)
        if isinstance(outcome, Erasure):
            await finish_erasure(info.context.services, outcome)
            erased = await info.context.loaders.user(parsed_id)
            return UserErased(user=User.from_domain(erased, admin) if erased else None)
        return _present(outcome, ResultView(admin))


_AdministrationRefusal = (
    refusals.UserNotFound
    | accounts.EmailTaken
    | administration.AdminRequired
    | administration.LastAdmin
    | administration.CannotEraseSelf
    | validation.InvalidInput
)


def _present(refusal: _AdministrationRefusal, view: ResultView) -> Refusal:
    """Show why an account cannot be changed."""
    match refusal:
        case refusals.UserNotFound():
            return UserNotFound.from_domain(refusal, view)
        case accounts.EmailTaken():
            return EmailTaken.from_domain(refusal, view)
        case administration.AdminRequired():
            return AdminRequired.create()
        case administration.LastAdmin():
            return LastAdmin.from_domain(refusal, view)
        case administration.CannotEraseSelf():
            return CannotEraseSelf.create()
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
