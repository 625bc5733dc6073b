"""Compiled operations give the results of graphql-core, for generated documents and data."""

import asyncio
import gc
from collections.abc import Iterator

import pytest
from graphql import parse, validate
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from comparison import comparable, run_compiled, run_reference
from random_documents import RandomRequest, requests
from synthetic_schema import SCHEMA, Chances

# When a sibling fails, both executors cancel coroutines that have not begun.
pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Collect these coroutines here, where their warnings are ignored."""
    yield
    gc.collect()


DIFFERENTIAL = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@pytest.mark.parametrize("waiting", [0.0, 0.1, 0.5])
@given(requests(), st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.1, 0.3]))
@DIFFERENTIAL
def test_results_and_errors_equal_those_of_graphql_core(
    waiting: float, request: RandomRequest, seed: int, failure: float
) -> None:
    document = parse(request.text)
    assume(not validate(SCHEMA, document))
    chances = Chances(seed, failure, waiting)
    expected = asyncio.run(run_reference(SCHEMA, document, request.variables, chances))
    result = asyncio.run(run_compiled(SCHEMA, document, request.variables, chances))
    if result is None:
        assert None in request.variables.values()
        event("unsupported")
        return
    event("errors" if expected.errors else "data only")
    event("no data" if expected.data is None else "some data")
    assert comparable(result) == comparable(expected)
