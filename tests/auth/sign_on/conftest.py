"""A provider of the tests, and the sign-in of a client there."""

import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from slotlock.auth.container import Auth
from slotlock.auth.providers.connections import open_sign_on
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.repositories import Repositories
from tests.support.sign_on.lying_provider import LyingProvider, lying_provider
from tests.support.sign_on.scene import BOARD, SignOnScene


@pytest.fixture
def provider() -> Iterator[LyingProvider]:
    """Yield a provider with a user of its own for each test."""
    with lying_provider() as running:
        running.claims = {"sub": secrets.token_hex(8)}
        yield running


@pytest.fixture
async def scene(auth: Auth, provider: LyingProvider) -> AsyncIterator[SignOnScene]:
    """Yield a server at which users of the provider sign in."""
    async with open_sign_on([provider.settings()], BOARD) as sign_on:
        yield SignOnScene(replace(auth, sign_on=sign_on), provider)


@pytest.fixture
async def repositories(mongo_url: str) -> AsyncIterator[Repositories]:
    """Yield what reads the audit log."""
    async with open_database(mongo_url) as database:
        yield Repositories(database)
