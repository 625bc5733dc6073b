"""Apps with rate limits low enough for a test to reach them, and clients with addresses."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.client import GraphQLTestClient
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, sign_in_new_user

READS_PER_MINUTE, WRITES_PER_MINUTE, USERS_PER_ADDRESS = 20, 15, 2
CANCEL_UNKNOWN_BOOKING = 'mutation { cancelBooking(bookingId: "none") { __typename } }'
LOGIN_WITH_BAD_EMAIL = (
    """mutation { login(input: {email: "not an address", password: "wrong"}) { __typename } }"""
)

# The windows of the limits do not end during a test, so that it does not depend on its speed.
ENDLESS_WINDOWS = {"VARIANT_WITHOUT_GUARDS": "endless-windows"}

address_numbers = count(int(IPv4Address("198.51.100.1")))


@contextmanager
def rate_limited_app(
    servers: EmbeddedServers, database: str, directory: Path, **overrides: str
) -> Iterator[AppProcess]:
    """Run an app with these limits per user and minute, and users per address."""
    settings = {
        **app_environment(servers, database),
        # In that of `two_apps`, these apps could get the leases of its workers.
        "SLOTLOCK_REDIS_URL": f"{servers.redis_url}/3",
        "SLOTLOCK_RATE_LIMITS": "on",
        "SLOTLOCK_RATE_READS": str(READS_PER_MINUTE),
        "SLOTLOCK_RATE_WRITES": str(WRITES_PER_MINUTE),
        "SLOTLOCK_RATE_USERS_PER_ADDRESS": str(USERS_PER_ADDRESS),
        # A trusted proxy may state the client's address, so that a test can have many.
        "SLOTLOCK_TRUSTED_PROXIES": "10.1.1.7,127.0.0.0/8",
        **overrides,
    }
    with forked_app(settings, directory) as app:
        yield app


def exceed_address_rate(url: str, headers: dict[str, str]) -> list[int]:
    """Send more requests than an address may and return their status codes. `*` is the number."""
    with httpx.Client(trust_env=False) as http:
        responses = [
            http.post(
                url + "/graphql",
                json={"query": "{ __typename }"},
                headers={name: text.replace("*", str(n)) for name, text in headers.items()},
            )
            for n in range(USERS_PER_ADDRESS * READS_PER_MINUTE + 1)
        ]
    return [response.status_code for response in responses]


def next_address() -> str:
    """Return an address that no client has used."""
    return str(IPv4Address(next(address_numbers)))


class AddressedClient(GraphQLTestClient):
    """A client whose address is stated by a proxy."""

    address = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers for identity and address."""
        return {**super().headers, "X-Forwarded-For": self.address}

    async def post(self, document: str, **headers: str) -> httpx.Response:
        """Send a document and return the HTTP response."""
        url, sent = self.url + "/graphql", {**self.headers, **headers}
        return await self.http.post(url, json={"query": document}, headers=sent)

    async def count_accepted(self, times: int, document: str = "{ __typename }") -> int:
        """Send a document several times and return how often it was executed."""
        responses = [await self.post(document) for _ in range(times)]
        return sum(response.status_code == 200 for response in responses)


def client_at_new_address(
    http: httpx.AsyncClient, app: AppProcess, token: str | None = None
) -> AddressedClient:
    """Return a client at an address that no client has used."""
    client = AddressedClient(http, app.url, token)
    client.address = next_address()
    return client


@pytest.fixture(scope="module")
def rate_limited(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield a process with low rate limits. Every test uses its own users and addresses.

    Its windows do not end: a test of their length uses `limited_by_minute`.
    """
    directory = tmp_path_factory.mktemp("rate_limited")
    with rate_limited_app(servers, "limited", directory, **ENDLESS_WINDOWS) as app:
        yield app


@pytest.fixture(scope="module")
def limited_by_minute(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield a process with low rate limits and the windows of production."""
    with rate_limited_app(servers, "limited", tmp_path_factory.mktemp("by_minute")) as app:
        yield app


@pytest.fixture
def early_in_minute() -> None:
    """Begin the test early enough in a minute, which is the window of the limits, to end in it."""
    wait_until(lambda: time.time() % 60 < 40, "the next minute", timeout_s=30)


@pytest.fixture
async def stranger(rate_limited: AppProcess, http: httpx.AsyncClient) -> AddressedClient:
    """Return an anonymous client at an address of its own."""
    return client_at_new_address(http, rate_limited)


@pytest.fixture
async def caller(rate_limited: AppProcess, http: httpx.AsyncClient) -> AddressedClient:
    """Return a member's client at an address of its own."""
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return client_at_new_address(http, rate_limited, await sign_in_new_user(auth, Role.MEMBER))
