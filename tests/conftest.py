"""Real servers and real processes for every test that needs them."""

from collections.abc import AsyncIterator, Generator, Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
from httpx._transports import default as transports

from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, recent_app_logs
from tests.support.clients.client import http_client
from tests.support.stores.users import UserTokens, create_user_tokens

pytest_plugins = ["tests.support.apps.rate_limited"]

# Each client would read the certificates of the whole world first, for 18 ms; nothing here is TLS.
transports.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show beside a failure what the processes of the app logged during the test."""
    report = yield
    if report.failed and (logged := recent_app_logs(call.start)):
        report.sections.append(("logged by the app", logged))
    return report


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """MongoDB and Valkey that all tests share; a test that harms a server starts its own."""
    with embedded_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="session")
def app(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """One process of the app, with a database of its own."""
    with forked_app(app_environment(servers, "one_app"), tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture(scope="session")
def two_apps(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AppProcess, AppProcess]]:
    """Two processes of the app on one database, as behind a load balancer."""
    shared = app_environment(servers, "two_apps")
    log_dir = tmp_path_factory.mktemp("two_apps")
    with forked_app(shared, log_dir / "a") as first, forked_app(shared, log_dir / "b") as second:
        yield first, second


@pytest.fixture
async def user_tokens(two_apps: tuple[AppProcess, AppProcess]) -> UserTokens:
    """Two hundred people and an organiser, signed in, who know both processes."""
    return await create_user_tokens(two_apps[0].environment, 200)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """Connections enough for a rush."""
    async with http_client() as opened:
        yield opened


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Where a test's own processes log to."""
    return tmp_path / "logs"
