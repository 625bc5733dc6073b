"""Sign-ins at the provider of the tests, within the process of the test."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.providers.connections import open_sign_on
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on.identities import IdentityInfo, list_identities
from slotlock.auth.sign_on.sign_in import challenge_of, finish_sign_in, link_sign_in, start_sign_in
from slotlock.auth.sign_on.sign_in_outcomes import (
    FinishSignInOutcome,
    LinkSignInOutcome,
    SignInStarted,
)
from slotlock.domain.users.user import Caller, User, UserId
from tests.support.sign_on.lying_provider import LyingProvider

BOARD = "https://slots.example.org/board"


@dataclass
class SignOnScene:
    """A server and its provider. `verifier` is the secret of the client."""

    auth: Auth
    provider: LyingProvider
    verifier: str = secrets.token_urlsafe(32)

    async def start(self, provider: LyingProvider | None = None) -> tuple[str, str]:
        """Start a sign-in, and sign in at the provider. Return the state and the code."""
        started = await start_sign_in(self.auth, "school", challenge_of(self.verifier))
        assert isinstance(started, SignInStarted), started
        return (provider or self.provider).code_for(started.url)

    async def finish(self, state: str, code: str, **fields: Any) -> FinishSignInOutcome:
        """Finish a sign-in."""
        return await finish_sign_in(
            self.auth, state, code, fields.pop("verifier", self.verifier), **fields
        )

    async def sign_in(self) -> FinishSignInOutcome:
        """Sign in from the start to the end."""
        return await self.finish(*await self.start())

    async def user(self) -> User:
        """Sign in and return the user."""
        outcome = await self.sign_in()
        assert isinstance(outcome, SignedInSession), outcome
        return outcome.user

    async def caller(self) -> Caller:
        """Sign in and return the caller of the session."""
        outcome = await self.sign_in()
        assert isinstance(outcome, SignedInSession), outcome
        caller = await authenticate(self.auth, f"Bearer {outcome.access_token}")
        assert caller is not None
        return caller

    async def link(self, caller: Caller, password: str | None = None) -> LinkSignInOutcome:
        """Sign in at the provider and link this to a caller, who gives the password."""
        started = await self.start()
        return await link_sign_in(
            self.auth, caller, *started, self.verifier, current_password=password
        )

    async def identities(self, user_id: UserId) -> list[IdentityInfo]:
        """Return what a user signs in with."""
        return (await list_identities(self.auth, [user_id]))[user_id]

    @asynccontextmanager
    async def configured(self, **fields: Any) -> AsyncIterator["SignOnScene"]:
        """Yield a server with other settings of the provider."""
        async with open_sign_on([self.provider.settings(**fields)], BOARD) as sign_on:
            yield replace(self, auth=replace(self.auth, sign_on=sign_on))
