"""One's own sessions: asking which are open, ending them, and changing the password."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, changing_password, own_sessions
from slotlock.auth.signing_in import throttle_login
from slotlock.domain.refusals import InvalidInput as Invalid
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.types.own_sessions import (
    ChangePasswordResult,
    EndSessionResult,
    OpenSession,
    PasswordChanged,
    SessionEnded,
    SessionNotFound,
)
from slotlock.graphql.types.refusals import InvalidInput
from slotlock.graphql.types.sessions import InvalidCredentials, TooManyAttempts


@strawberry.input(description="A password and the one that takes its place.")
class ChangePasswordInput:
    current_password: str = field(description="The caller's password.")
    new_password: str = field(description="8 to 128 characters.")


@strawberry.type
class OwnSessionQueries:
    @field(description="The caller's open sessions, at most 100, the last that was opened first.")
    async def my_sessions(self, info: Info) -> list[OpenSession]:
        caller = info.context.caller
        found = await own_sessions.list_sessions(info.context.auth, caller)
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
        await own_sessions.end_session_by_key(info.context.auth, caller, named[1])
        return SessionEnded(session_id=id)

    @field(description="End every session of the caller's but this one; how many there were.")
    async def end_other_sessions(self, info: Info) -> int:
        return await own_sessions.end_other_sessions(info.context.auth, info.context.caller)

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
            case Invalid():
                return InvalidInput.from_domain(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.from_domain(outcome)
            case _:
                assert_never(outcome)
