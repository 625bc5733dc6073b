"""One's own sessions: asking which are open, ending them, and changing the password."""

from datetime import datetime
from typing import Annotated, Self, assert_never

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, sessions
from slotlock.auth import accounts as changing_password
from slotlock.auth.accounts import throttle_login
from slotlock.domain.shared import validation
from slotlock.domain.users.user import UserId
from slotlock.graphql.accounts.types import InvalidCredentials, TooManyAttempts
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.ids import session_global_id
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode
from slotlock.graphql.users.types import Node


@strawberry.type(description="A session of the caller's that is open.")
class OpenSession(Node):
    created_at: datetime = field(description="When they signed in.")
    last_used_at: datetime = field(description="When they signed in or last refreshed it.")
    client: str | None = field(
        description="What the program that signed in calls itself, at most 200 characters of it; "
        "anybody can call themselves anything."
    )
    current: bool = field(description="Whether it is the one that asks.")

    @classmethod
    def from_domain(cls, session: sessions.SessionInfo, user_id: UserId) -> Self:
        return cls(
            id=session_global_id(user_id, session.key),
            created_at=session.created_at,
            last_used_at=session.last_used_at,
            client=session.user_agent,
            current=session.current,
        )


@strawberry.type(description="No session of this id is open any more.")
class SessionEnded:
    session_id: strawberry.ID = field(description="The session.")


@strawberry.type(description="The id is of no session of the caller's.")
class SessionNotFound(Refusal):
    @classmethod
    def create(cls) -> Self:
        return cls(code=RefusalCode.SESSION_NOT_FOUND, message="You have no such session.")


@strawberry.type(description="The new password is good from now on, and the old one is not.")
class PasswordChanged:
    ended_sessions: int = field(description="How many other sessions of the caller's this ended.")


EndSessionResult = Annotated[
    SessionEnded | SessionNotFound,
    strawberry.union("EndSessionResult", description="What came of ending a session."),
]
ChangePasswordResult = Annotated[
    PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts,
    strawberry.union("ChangePasswordResult", description="What came of changing a password."),
]


@strawberry.input(description="A password and the one that takes its place.")
class ChangePasswordInput:
    current_password: str = field(description="The caller's password.")
    new_password: str = field(description="8 to 128 characters.")


@strawberry.type
class OwnSessionQueries:
    @field(description="The caller's open sessions, at most 100, the last that was opened first.")
    async def my_sessions(self, info: Info) -> list[OpenSession]:
        caller = info.context.caller
        found = await sessions.list_sessions(info.context.auth, caller)
        return [OpenSession.from_domain(session, caller.user_id) for session in found]


@strawberry.type
class OwnSessionMutations:
    @field(
        description="End a session of the caller's with all its tokens, everywhere and at once. "
        "One that has ended is answered the same."
    )
    async def end_session(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The session.")],  # noqa: A002
    ) -> EndSessionResult:
        caller, named = info.context.caller, ids.parse_session_id(id)
        if named is None or named[0] != caller.user_id:
            return SessionNotFound.create()
        await sessions.end_session_by_key(info.context.auth, caller, named[1])
        return SessionEnded(session_id=id)

    @field(description="End every session of the caller's but this one; how many there were.")
    async def end_other_sessions(self, info: Info) -> int:
        return await sessions.end_other_sessions(info.context.auth, info.context.caller)

    @field(
        description="Change the caller's password. Every other session of theirs ends, also one "
        "that is being opened with the old password; this one stays."
    )
    async def change_password(
        self,
        info: Info,
        input: Annotated[ChangePasswordInput, argument(description="Both passwords.")],  # noqa: A002
    ) -> ChangePasswordResult:
        context, caller = info.context, info.context.caller
        user = await context.users.load(caller.user_id)
        outcome = await throttle_login(
            context.auth,
            user.email if user else None,
            context.client.address,
            lambda: changing_password.change_password(
                context.auth, caller, input.current_password, input.new_password
            ),
        )
        match outcome:
            case changing_password.PasswordChanged():
                return PasswordChanged(ended_sessions=outcome.ended_sessions)
            case accounts.InvalidCredentials():
                return InvalidCredentials.from_domain("The current password is wrong.")
            case validation.InvalidInput():
                return InvalidInput.from_domain(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.from_domain(outcome)
            case _:
                assert_never(outcome)
