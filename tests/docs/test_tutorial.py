"""Every example of the tutorial does what its page says, against a real server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.tutorial import EXPECTED_OUTPUT, SETUP, Example, problem_of, read_examples
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import (
    ADMIN_EMAIL,
    ADMIN_PASSWORD,
    AppProcess,
    app_environment,
)

EXAMPLES = {example.name: example for example in read_examples()}
RUN_HERE = [example for example in EXAMPLES.values() if example.name != SETUP]


def run(example: Example, app: AppProcess, home: Path) -> str | None:
    """Return what is wrong with an example, or None."""
    return problem_of(example, home, f"{app.url}/graphql", ADMIN_EMAIL, ADMIN_PASSWORD)


@pytest.fixture(scope="module")
def app_with_slot(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Run an app in which the first example of the tutorial has created its slot.

    It has a Redis database of its own: an app on another MongoDB database would take its tickets.
    """
    own_redis = replace(servers, redis_url=f"{servers.redis_url}/8")
    home = tmp_path_factory.mktemp("tutorial")
    with forked_app(app_environment(own_redis, "tutorial"), home) as app:
        assert run(EXAMPLES[SETUP], app, home) is None
        yield app


@pytest.mark.parametrize("example", RUN_HERE, ids=lambda example: example.name)
def test_the_example_works_when_pasted(
    example: Example, app_with_slot: AppProcess, tmp_path: Path
) -> None:
    assert run(example, app_with_slot, tmp_path) is None


def test_every_example_is_run_somewhere_and_has_an_expected_output() -> None:
    assert len(EXAMPLES) == len(read_examples()), "two examples share a name"
    assert EXAMPLES.keys() == EXPECTED_OUTPUT.keys()


def test_a_failing_example_is_reported(app: AppProcess, tmp_path: Path) -> None:
    refused = Example("curl-book", "echo refused; exit 3")
    assert "ended with 3: refused" in (run(refused, app, tmp_path) or "")
    silent = Example("curl-book", "true")
    assert run(silent, app, tmp_path) is not None
