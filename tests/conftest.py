"""Real servers and real processes for every test that needs them."""

import gc
import logging
import os
import shutil
import signal
import ssl
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
from tests.support.apps.processes import AppProcess, Pair, named_environment, recent_app_logs
from tests.support.board.chromium import NO_BROWSER
from tests.support.clients.client import http_client
from tests.support.queue.deployment import SharedFrontends, open_shared_frontends
from tests.support.queue.queued_users import IsolatedQueue, open_isolated_queue
from tests.support.stores.cheap_hashes import hash_cheaply
from tests.support.stores.empty_database import reuse_databases
from tests.support.stores.users import UserTokens, create_user_tokens
from tests.tiers import EVERYDAY, tier_of

FAST_FOLDERS = ("conformance", "domain", "graphql", "strawberry-compiled")

# What a run checks follows from the commit. `make test-slow` draws new examples, and more of them.
settings.register_profile("fixed", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("drawn", max_examples=200, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("TEST_EXAMPLES", "fixed"))

pytest_plugins = [
    "tests.support.apps.rate_limited",
    "tests.support.clients.fixtures",
    "tests.support.model.service_pair",
    "tests.support.rewriting",
    "tests.support.transport.open_transports",
]

# Servers write their data into memory, where an fsync takes no time.
MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 8 << 30  # noqa: S108
if MEMORY.exists() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# What a shell starts in the background ignores this signal, and so would what the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Every client would load the CA certificates, which takes 18 ms. No test uses TLS.
httpx._transports.default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]
# So does each client of mail servers.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
hash_cheaply()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the log lines of the app's processes to the report of a failure."""
    report = yield
    if report.failed and (logged := recent_app_logs(call.start)):
        report.sections.append(("logged by the app", logged))
    return report


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that `make test` runs nothing of: to import them takes seconds."""
    node_id = collection_path.relative_to(config.rootpath).as_posix()
    return (config.option.markexpr == EVERYDAY and tier_of(node_id) is not None) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier, and run the fast folders last.

    Last, a file of 60 s would occupy a worker alone. Two apps that rest take 2 % of a core, and
    read what others write: the files that need them come after those that do not.
    """
    for item in items:
        if tier := tier_of(item.nodeid):
            item.add_marker(tier)
    with_apps = {item.path for item in items if "two_apps" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (item.nodeid.split("/")[1] in FAST_FOLDERS, item.path in with_apps))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Empty the databases of a module at its end, when its fixtures use them no more."""
    yield
    if nextitem and nextitem.path != item.path:
        reuse_databases()


def pytest_runtest_logfinish() -> None:
    """Undo what a command in this process did to the log, its levels and its closed stream."""
    for handler in list(logging.root.handlers):
        if type(handler) is logging.StreamHandler:
            logging.root.removeHandler(handler)
    logging.root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of each garbage collection."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that the tests of the board's pages were skipped, which is easily overlooked."""
    skipped = terminalreporter.stats.get("skipped", [])
    if count := sum(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.section(f"{count} tests of the board were SKIPPED: {NO_BROWSER}", red=True)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """Yield the MongoDB and Valkey of all tests. A test that stops a server starts its own."""
    with embedded_servers(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture(scope="session")
def two_apps(servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Yield two processes of the app that share a database, as behind a load balancer."""
    environment = named_environment(servers, "two_apps")
    directory = tmp_path_factory.mktemp("two_apps")
    with (
        forked_app(environment, directory / "a") as first,
        forked_app(environment, directory / "b") as second,
    ):
        yield first, second


@pytest.fixture(scope="session")
def app(two_apps: Pair) -> AppProcess:
    """Return one of the two processes. Each idle one takes 2 to 4 % of a core."""
    return two_apps[0]


@pytest.fixture
def user_tokens(two_apps: Pair) -> UserTokens:
    """Return access tokens of 200 members and an organizer, valid at both processes."""
    return create_user_tokens(two_apps[0].environment, 200)


@pytest.fixture
async def deployment(
    request: pytest.FixtureRequest, two_apps: Pair, log_dir: Path
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


@pytest.fixture(scope="module")
def queue_frontends(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedFrontends]:
    """Yield the apps of the queue that the tests of a module share."""
    with open_shared_frontends(servers, tmp_path_factory.mktemp("frontends")) as opened:
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
