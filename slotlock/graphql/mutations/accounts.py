"""Registering, signing in, staying signed in and leaving."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, inviting, sessions
from slotlock.auth.signing_in import throttled
from slotlock.domain.refusals import InvalidInput as Invalid
from slotlock.graphql.context import Info
from slotlock.graphql.scalars import EmailAddress
from slotlock.graphql.types.refusals import InvalidInput
from slotlock.graphql.types.sessions import (
    Banned,
    EmailTaken,
    InvalidCredentials,
    InvalidInvitation,
    InvalidSession,
    LoginResult,
    RefreshResult,
    RegisterResult,
    Session,
    SetPasswordResult,
    TooManyAttempts,
)


@strawberry.input(description="Who registers.")
class RegisterInput:
    name: str = field(description="1 to 100 characters, shown to organisers.")
    email: EmailAddress = field(description="Their address, to sign in with.")
    password: str = field(description="8 to 128 characters.")


@strawberry.input(description="Who signs in.")
class LoginInput:
    email: EmailAddress = field(description="The address they registered with.")
    password: str = field(description="Their password.")


@strawberry.type
class AccountMutations:
    @field(description="Create a member's account and sign in.")
    async def register(
        self,
        info: Info,
        input: Annotated[RegisterInput, argument(description="Who registers.")],  # noqa: A002
    ) -> RegisterResult:
        context, client = info.context, info.context.client
        outcome = await throttled(
            context.auth,
            input.email,
            client.address,
            lambda: accounts.register(
                context.auth, input.name, input.email, input.password, client.agent
            ),
        )
        match outcome:
            case sessions.Session():
                return Session.of(outcome)
            case accounts.EmailTaken():
                return EmailTaken.of(outcome)
            case Invalid():
                return InvalidInput.of(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.of(outcome)
            case _:
                assert_never(outcome)

    @field(description="Sign in.")
    async def login(
        self,
        info: Info,
        input: Annotated[LoginInput, argument(description="Who signs in.")],  # noqa: A002
    ) -> LoginResult:
        context, client = info.context, info.context.client
        outcome = await throttled(
            context.auth,
            input.email,
            client.address,
            lambda: accounts.login(context.auth, input.email, input.password, client.agent),
        )
        match outcome:
            case sessions.Session():
                return Session.of(outcome)
            case accounts.InvalidCredentials():
                return InvalidCredentials.of()
            case accounts.Banned():
                return Banned.of()
            case accounts.TooManyAttempts():
                return TooManyAttempts.of(outcome)
            case _:
                assert_never(outcome)

    @field(
        description="Set the first password of somebody who was imported, with the token of their "
        "invitation, and sign in. A token is good once."
    )
    async def set_password(
        self,
        info: Info,
        token: Annotated[str, argument(description="What the invitation says.")],
        password: Annotated[str, argument(description="8 to 128 characters.")],
    ) -> SetPasswordResult:
        context, client = info.context, info.context.client
        # Not throttled: nobody guesses a token, and failures here would keep neighbours out.
        outcome = await inviting.set_password(context.auth, token, password, client.agent)
        match outcome:
            case sessions.Session():
                return Session.of(outcome)
            case inviting.InvalidInvitation():
                return InvalidInvitation.of()
            case accounts.Banned():
                return Banned.of()
            case Invalid():
                return InvalidInput.of(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.of(outcome)
            case _:
                assert_never(outcome)

    @field(
        description="Exchange a refresh token for a new pair. Each is good once; one that is used "
        "again ends the session for everybody who holds it."
    )
    async def refresh_session(
        self,
        info: Info,
        refresh_token: Annotated[str, argument(description="The latest refresh token.")],
    ) -> RefreshResult:
        outcome = await sessions.refresh_session(info.context.auth, refresh_token)
        match outcome:
            case sessions.Session():
                return Session.of(outcome)
            case sessions.InvalidSession():
                return InvalidSession.of()
            case _:
                assert_never(outcome)

    @field(description="End the caller's session with all its tokens.")
    async def logout(self, info: Info) -> bool:
        await sessions.logout(info.context.auth, info.context.caller)
        return True
