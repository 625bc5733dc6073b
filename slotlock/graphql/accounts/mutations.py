"""Registering, signing in, staying signed in and leaving."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar, assert_never

import strawberry
from strawberry import argument, field

from slotlock.auth import accounts, invitations, sessions
from slotlock.auth.accounts import throttle_login, was_rejected_before_hashing
from slotlock.domain.shared import validation
from slotlock.graphql.accounts.types import (
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
from slotlock.graphql.context import Context, Info
from slotlock.graphql.core.refusals import InvalidInput
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.limits.operation_kinds import OperationKind

Outcome = TypeVar("Outcome")


async def _throttled_sign_in(
    context: Context, email: str, sign_in: Callable[[], Awaitable[Outcome]]
) -> Outcome | accounts.TooManyAttempts:
    """What comes of the act. What cost nothing must not use up what neighbours sign in with."""
    outcome = await throttle_login(context.auth, email, context.client.address, sign_in)
    if was_rejected_before_hashing(outcome):
        await context.refund(OperationKind.SIGN_IN)
    return outcome


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
        auth, client = info.context.auth, info.context.client
        outcome = await _throttled_sign_in(
            info.context,
            input.email,
            lambda: accounts.register(
                auth, input.name, input.email, input.password, client.user_agent
            ),
        )
        match outcome:
            case sessions.SignedInSession():
                return Session.from_domain(outcome)
            case accounts.EmailTaken():
                return EmailTaken.from_domain(outcome)
            case validation.InvalidInput():
                return InvalidInput.from_domain(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.from_domain(outcome)
            case _:
                assert_never(outcome)

    @field(description="Sign in.")
    async def login(
        self,
        info: Info,
        input: Annotated[LoginInput, argument(description="Who signs in.")],  # noqa: A002
    ) -> LoginResult:
        auth, client = info.context.auth, info.context.client
        outcome = await _throttled_sign_in(
            info.context,
            input.email,
            lambda: accounts.login(auth, input.email, input.password, client.user_agent),
        )
        match outcome:
            case sessions.SignedInSession():
                return Session.from_domain(outcome)
            case accounts.InvalidCredentials():
                return InvalidCredentials.from_domain()
            case accounts.Banned():
                return Banned.from_domain()
            case accounts.TooManyAttempts():
                return TooManyAttempts.from_domain(outcome)
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
        outcome = await invitations.set_password(context.auth, token, password, client.user_agent)
        match outcome:
            case sessions.SignedInSession():
                return Session.from_domain(outcome)
            case invitations.InvalidInvitation():
                return InvalidInvitation.from_domain()
            case accounts.Banned():
                return Banned.from_domain()
            case validation.InvalidInput():
                return InvalidInput.from_domain(outcome)
            case accounts.TooManyAttempts():
                return TooManyAttempts.from_domain(outcome)
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
            case sessions.SignedInSession():
                return Session.from_domain(outcome)
            case sessions.InvalidSession():
                return InvalidSession.from_domain()
            case _:
                assert_never(outcome)

    @field(description="End the caller's session with all its tokens.")
    async def logout(self, info: Info) -> bool:
        await sessions.logout(info.context.auth, info.context.caller)
        return True
