"""The caller's own sessions: list them, end them, and change the password."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, sessions
from slotlock.auth.accounts import throttle_login
from slotlock.graphql.accounts.refusals import (
    InvalidCredentials,
    SessionNotFound,
    TooManyAttempts,
    present_account_refusal,
)
from slotlock.graphql.accounts.types import END_CALENDAR_FEED, NEW_PASSWORD, OpenSession
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.refusals import InvalidInput, Refusal
from slotlock.graphql.core.result_view import ResultView


@strawberry.type(description="The caller has no open session of this id any more.")
class SessionEnded:
    session_id: strawberry.ID = field(description="The id of the ended session.")


@strawberry.type(description="The new password replaced the old one.")
class PasswordChanged:
    ended_sessions: int = field(
        description="How many other sessions of the caller were ended by the change."
    )


EndSessionResult = Annotated[
    SessionEnded | SessionNotFound,
    strawberry.union("EndSessionResult", description="The ended session, or a refusal."),
]
ChangePasswordResult = Annotated[
    PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts,
    strawberry.union("ChangePasswordResult", description="The password change, or a refusal."),
]


@strawberry.input(description="The current and the new password of the caller.")
class ChangePasswordInput:
    current_password: str = field(description="The current password of the caller.")
    new_password: str = field(description=NEW_PASSWORD)
    end_calendar_feed: bool = field(default=False, description=END_CALENDAR_FEED)


ChangePasswordArgument = Annotated[
    ChangePasswordInput, argument(description="The current and the new password.")
]


@strawberry.type
class OwnSessionQueries:
    @field(description="The open sessions of the caller, newest first; at most 100.")
    async def my_sessions(self, info: Info) -> list[OpenSession]:
        caller = info.context.caller
        found = await sessions.list_sessions(info.context.auth, caller)
        return [OpenSession.from_domain(session, caller.user_id) for session in found]


@strawberry.type
class OwnSessionMutations:
    @field(
        description="End a session of the caller and revoke all of its tokens immediately. Ending "
        "a session again gives the same result.",
        graphql_type=EndSessionResult,
    )
    async def end_session(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the session.")],  # noqa: A002
    ) -> SessionEnded | Refusal:
        caller = info.context.caller
        session = ids.parse_session_id(id)
        if session is None or session[0] != caller.user_id:
            return SessionNotFound.create()
        await sessions.end_session_by_key(info.context.auth, caller, session[1])
        return SessionEnded(session_id=id)

    @field(
        description="End all sessions of the caller except the current one. Returns how many were "
        "ended."
    )
    async def end_other_sessions(self, info: Info) -> int:
        return await sessions.end_other_sessions(info.context.auth, info.context.caller)

    @field(
        description="Change the caller's password. All other sessions of the caller end, including "
        "one that is being opened with the old password.",
        graphql_type=ChangePasswordResult,
    )
    async def change_password(
        self,
        info: Info,
        input: ChangePasswordArgument,  # noqa: A002
    ) -> PasswordChanged | Refusal:
        context = info.context
        caller = context.caller
        user = await context.loaders.user(caller.user_id)
        outcome = await throttle_login(
            context.auth,
            user.email if user else None,
            context.client.address,
            lambda: accounts.change_password(
                context.auth,
                caller,
                input.current_password,
                input.new_password,
                context.client.address,
                end_calendar_feed=input.end_calendar_feed,
            ),
        )
        if isinstance(outcome, accounts.PasswordChanged):
            return PasswordChanged(ended_sessions=outcome.ended_sessions)
        if isinstance(outcome, accounts.InvalidCredentials):
            return InvalidCredentials.for_current_password()
        return present_account_refusal(outcome, ResultView(caller))
