"""Apps that limit rates, so narrowly that a test reaches the limits, and who asks them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path

import httpx
import pytest

from slotlock.api.embedded import Servers
from slotlock.domain.people import Role
from tests.support.client import Client
from tests.support.people import auth_on, sign_in
from tests.support.processes import AppProcess, environment, wait_until
from tests.support.troupe import forked_app

READS, WRITES, PEOPLE = 20, 15, 2
CANCEL = 'mutation { cancelBooking(bookingId: "none") { __typename } }'
LOGIN = """mutation { login(input: {email: "not an address", password: "wrong"}) { __typename } }"""

addresses = count(int(IPv4Address("198.51.100.1")))


@contextmanager
def limited_app(
    servers: Servers, database: str, directory: Path, **more: str
) -> Iterator[AppProcess]:
    """An app for so many reads and writes of a person and minute, and people an address."""
    settings = {
        **environment(servers, database),
        "SLOTLOCK_RATE_LIMITS": "on",
        "SLOTLOCK_RATE_READS": str(READS),
        "SLOTLOCK_RATE_WRITES": str(WRITES),
        "SLOTLOCK_RATE_PEOPLE_PER_ADDRESS": str(PEOPLE),
        # So that a test can come from many addresses.
        "SLOTLOCK_TRUSTED_PROXIES": "10.1.1.7,127.0.0.0/8",
        **more,
    }
    with forked_app(settings, directory) as app:
        yield app


def statuses(url: str, headers: dict[str, str]) -> list[int]:
    """What comes of asking more than one address may, each time with another number for `*`."""
    with httpx.Client(trust_env=False) as http:
        answers = [
            http.post(
                url + "/graphql",
                json={"query": "{ __typename }"},
                headers={name: text.replace("*", str(n)) for name, text in headers.items()},
            )
            for n in range(PEOPLE * READS + 1)
        ]
    return [answer.status_code for answer in answers]


def early_in_a_minute(left_s: int = 10) -> None:
    """Windows are minutes: what is counted exactly must not begin in one and end in the next."""
    wait_until(lambda: time.time() % 60 < 60 - left_s, "the next minute", within_s=30)


def new_address() -> str:
    """An address that nobody had before."""
    return str(IPv4Address(next(addresses)))


class From(Client):
    """Somebody at an address, as the proxy tells."""

    address = ""

    @property
    def headers(self) -> dict[str, str]:
        """Their identity and address."""
        return {**super().headers, "X-Forwarded-For": self.address}

    async def post(self, query: str, **headers: str) -> httpx.Response:
        """The whole response."""
        url, sent = self.url + "/graphql", {**self.headers, **headers}
        return await self.http.post(url, json={"query": query}, headers=sent)

    async def let_in(self, times: int, query: str = "{ __typename }") -> int:
        """How often in so many times this was executed."""
        answers = [await self.post(query) for _ in range(times)]
        return sum(answer.status_code == 200 for answer in answers)


def somewhere(http: httpx.AsyncClient, app: AppProcess, token: str | None = None) -> From:
    """Somebody at an address that nobody had before."""
    client = From(http, app.url, token)
    client.address = new_address()
    return client


@pytest.fixture(scope="session")
def limited(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """One process that limits rates narrowly; every test comes as others from elsewhere."""
    with limited_app(servers, "limited", tmp_path_factory.mktemp("limited")) as app:
        yield app


@pytest.fixture
def early(limited: AppProcess) -> None:
    """The test does not begin in one minute and end in the next."""
    early_in_a_minute()


@pytest.fixture
async def nobody(limited: AppProcess, http: httpx.AsyncClient) -> From:
    """Nobody in particular, at an address of their own."""
    return somewhere(http, limited)


@pytest.fixture
async def member(limited: AppProcess, http: httpx.AsyncClient) -> From:
    """A person at an address of their own."""
    async with auth_on(limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return somewhere(http, limited, await sign_in(auth, Role.MEMBER))
