"""Real servers and real processes for every test that needs them."""

import gc
import os
from collections.abc import AsyncIterator, Generator, Iterator
from functools import cache
from pathlib import Path

import httpx
import httpx._transports.default
import pytest
from hypothesis import settings

from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, recent_app_logs
from tests.support.clients.client import http_client
from tests.support.queue.queued_users import IsolatedQueue, open_isolated_queue
from tests.support.stores.users import UserTokens, create_user_tokens
from tests.tiers import PURE, is_slow

SLOW_FOLDERS = ("devserver", "simulation")
FAST_FOLDERS = ("conformance", "domain", "graphql")

pytest_plugins = ["tests.support.apps.rate_limited", "tests.support.rewriting"]

# What a run checks follows from the commit. `make test-slow` draws new examples.
settings.register_profile("fixed", derandomize=True)
settings.register_profile("drawn", print_blob=True)
settings.load_profile(os.environ.get("TEST_EXAMPLES", "fixed"))

# Every client would load the CA certificates, which takes 18 ms. No test uses TLS.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log lines of the app's processes to the report of a failure."""
    report = yield
    if report.failed and (logged := recent_app_logs(call.start)):
        report.sections.append(("logged by the app", logged))
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks of the tiers."""
    config.addinivalue_line("markers", "slow: run by `make test-slow`")
    config.addinivalue_line("markers", "pure: starts no server; run by `make check`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first and fast ones last. Last, a file of 60 s would occupy a worker alone."""

    def rank(item: pytest.Item) -> int:
        folder = item.nodeid.split("/")[1]
        return -1 if folder in SLOW_FOLDERS else folder in FAST_FOLDERS

    items.sort(key=rank)
    for item in items:
        if is_slow(item.nodeid):
            item.add_marker("slow")
        elif item.nodeid.startswith(PURE):
            item.add_marker("pure")


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of each garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """Yield the MongoDB and Valkey of all tests. A test that stops a server starts its own."""
    with embedded_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="session")
def app(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppProcess]:
    """Yield a process of the app with a database of its own."""
    with forked_app(app_environment(servers, "one_app"), tmp_path_factory.mktemp("app")) as running:
        yield running


@pytest.fixture(scope="session")
def two_apps(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[AppProcess, AppProcess]]:
    """Yield two processes of the app that share a database, as behind a load balancer."""
    environment = app_environment(servers, "two_apps")
    directory = tmp_path_factory.mktemp("two_apps")
    with (
        forked_app(environment, directory / "a") as first,
        forked_app(environment, directory / "b") as second,
    ):
        yield first, second


@pytest.fixture
def user_tokens(two_apps: tuple[AppProcess, AppProcess]) -> UserTokens:
    """Return access tokens of 200 members and an organizer, valid at both processes."""
    return create_user_tokens(two_apps[0].environment, 200)


@pytest.fixture
async def deployment(
    request: pytest.FixtureRequest, two_apps: tuple[AppProcess, AppProcess], log_dir: Path
) -> AsyncIterator[Deployment]:
    """Yield members and an organizer of `two_apps`, who may start variants of the app.

    A module sets the number of members as MEMBER_COUNT.
    """
    environment = two_apps[0].environment
    member_count = getattr(request.module, "MEMBER_COUNT", 12)
    async with open_deployment(environment, log_dir, member_count) as opened:
        yield opened


@pytest.fixture(scope="module")
def isolated_queue(
    request: pytest.FixtureRequest,
    servers: EmbeddedServers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[IsolatedQueue]:
    """Yield a Redis and a database for one module alone, with an app that serves no queue."""
    name = request.module.__name__.rpartition(".")[2]
    with open_isolated_queue(servers, tmp_path_factory.mktemp("queue"), name) as opened:
        yield opened


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client with enough connections for concurrent requests of many users."""
    async with http_client() as opened:
        yield opened


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Return a directory for the logs of a test's own processes."""
    return tmp_path / "logs"
