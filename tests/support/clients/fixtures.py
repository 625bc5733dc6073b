"""Signed-in clients of the two processes, as fixtures for every test."""

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from redis import Redis

from slotlock.auth.container import Auth
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient
from tests.support.stores.users import auth_for_database, sign_in_new_user

Two = tuple[BookingClient, BookingClient]
Three = tuple[BookingClient, BookingClient, BookingClient]
Four = tuple[BookingClient, BookingClient, BookingClient, BookingClient]
Five = tuple[BookingClient, BookingClient, BookingClient, BookingClient, BookingClient]


@pytest.fixture
async def clients(
    request: pytest.FixtureRequest, two_apps: Pair, http: httpx.AsyncClient
) -> tuple[BookingClient, ...]:
    """Return members, the first at the second process and so on in turns, and an organizer.

    A module sets the number of members as MEMBER_COUNT; two is the default. The first TEAM_SIZE of
    them are a team, in a module that sets it.
    """
    count = getattr(request.module, "MEMBER_COUNT", 2)
    members, organizer = create_booking_clients(http, count, *two_apps[::-1])
    organizer.url = two_apps[0].url
    if team_size := getattr(request.module, "TEAM_SIZE", 0):
        await members[0].create_team_with(*members[1:team_size])
    return (*members, organizer)


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> BookingClient:
    """Return an organizer at the first process, or at the app of the module."""
    return create_booking_clients(http, 0, app)[1]


@pytest.fixture
async def auth(app: AppProcess) -> AsyncIterator[Auth]:
    """Yield the accounts of the first process, or of the app of the module."""
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as opened:
        yield opened


@pytest.fixture
async def admin(app: AppProcess, http: httpx.AsyncClient, auth: Auth) -> BookingClient:
    """Return an admin at the first process, or at the app of the module."""
    return BookingClient(http, app.url, await sign_in_new_user(auth, Role.ADMIN))


@pytest.fixture
def member(app: AppProcess, http: httpx.AsyncClient) -> BookingClient:
    """Return a member at the first process, or at the app of the module."""
    return create_booking_clients(http, 1, app)[0][0]


@pytest.fixture
def anonymous(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    """Return a client without a user."""
    return GraphQLTestClient(http, app.url)


@pytest.fixture
def mongo_url(two_apps: Pair) -> str:
    """Return the URL of the database of both processes."""
    return two_apps[0].environment["SLOTLOCK_MONGO_URL"]


@pytest.fixture
def redis(servers: EmbeddedServers) -> Iterator[Redis]:
    """Yield the Redis of both processes."""
    with Redis.from_url(servers.redis_url) as client:
        yield client
