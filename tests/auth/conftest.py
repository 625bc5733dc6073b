"""Authentication on a database of each module."""

import secrets
from collections.abc import AsyncIterator

import pytest

from slotlock.auth.container import Auth
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import database_url
from tests.support.stores.users import auth_for_database


@pytest.fixture
def mongo_url(request: pytest.FixtureRequest, servers: EmbeddedServers) -> str:
    """Return the URL of a database for one module alone."""
    return database_url(servers, request.module.__name__.rpartition(".")[2])


@pytest.fixture
async def auth(mongo_url: str) -> AsyncIterator[Auth]:
    """Yield the authentication of a process."""
    async with auth_for_database(mongo_url) as opened:
        yield opened


@pytest.fixture
async def other_process(mongo_url: str) -> AsyncIterator[Auth]:
    """Yield the authentication of another process with the same database."""
    async with auth_for_database(mongo_url) as opened:
        yield opened


@pytest.fixture
def domain() -> str:
    """Return a domain for e-mail addresses that no other test uses."""
    return f"{secrets.token_hex(8)}.test"
