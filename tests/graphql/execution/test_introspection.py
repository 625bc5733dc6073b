"""Introspection has a limit of its own, and its result is computed once for everybody."""

import json
from pathlib import Path
from typing import cast

import httpx
import pytest
from graphql import (
    build_client_schema,
    build_schema,
    get_introspection_query,
    lexicographic_sort_schema,
    print_schema,
)

from slotlock.graphql.context import Context
from slotlock.graphql.execution import document_cache, introspection
from slotlock.graphql.execution.document_cache import (
    MAX_CACHED_DOCUMENTS,
    DocumentCache,
    DocumentError,
    Operation,
)
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess, app_process
from tests.support.clients.client import open_websocket

# As graphql-js 16 with all its options.
EVERYTHING = get_introspection_query(
    descriptions=True,
    specified_by_url=True,
    directive_is_repeatable=True,
    schema_description=True,
    input_value_deprecation=True,
    one_of=True,
)
SCHEMA_FILE = Path(__file__).parents[3] / "schema.graphql"
SMALL = "{ __schema { queryType { name } } __typename }"
# A fifth of the cache is for documents that nobody has used again.
MAX_NEW_DOCUMENTS = MAX_CACHED_DOCUMENTS // 5
UNUSED_CONTEXT = cast("Context", None)


@pytest.fixture
def cache() -> DocumentCache:
    """Return an empty cache."""
    return DocumentCache(executable_schema, introspection=True)


async def test_introspection_with_all_options_describes_the_whole_schema(
    cache: DocumentCache,
) -> None:
    operation = cache.resolve_operation(EVERYTHING, "IntrospectionQuery")
    response = await execute_operation(operation, None, UNUSED_CONTEXT)
    described = build_client_schema(json.loads(response.encode())["data"])
    stored = build_schema(SCHEMA_FILE.read_text())
    shown, expected = map(lexicographic_sort_schema, (described, stored))
    assert print_schema(shown) == print_schema(expected)


def test_a_result_is_computed_once_and_evicts_no_document(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [f"{{ a{n}: __typename }}" for n in range(MAX_NEW_DOCUMENTS)]
    for text in [*documents, SMALL]:
        cache.resolve_operation(text, None)
    monkeypatch.setattr(document_cache, "parse", None)  # a second time, it would fail
    results = [cache.resolve_operation(text, None).result for text in [*documents, SMALL, SMALL]]
    assert results[:-2] == [None] * MAX_NEW_DOCUMENTS
    assert results[-1] is results[-2]
    assert results[-1] is not None
    assert results[-1].data == {"__schema": {"queryType": {"name": "Query"}}, "__typename": "Query"}


@pytest.mark.parametrize(
    "text",
    [
        "query($name: String!) { __type(name: $name) { name } }",
        "{ __schema { queryType { name } } me { id } }",
        "query A { __schema { queryType { name } } } query B { __typename }",
        "{ __typename }",
        "mutation { __typename }",
    ],
)
def test_only_what_is_the_same_for_everybody_is_computed_with_the_document(
    cache: DocumentCache, text: str
) -> None:
    assert all(operation.result is None for operation in cache.parse(text).values())


def test_introspection_in_fragments_counts_as_such(cache: DocumentCache) -> None:
    text = "{ ...Q } fragment Q on Query { ... { __schema { queryType { name } } } }"
    operation: Operation = cache.resolve_operation(text, None)
    assert operation.result is not None
    assert operation.result.data == {"__schema": {"queryType": {"name": "Query"}}}


def test_introspection_beyond_its_limit_is_rejected_again_without_an_execution(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    aliases = " ".join(
        f"a{n}: types {{ name description fields {{ name description type {{ name kind }} }} }}"
        for n in range(15)
    )
    text = f"{{ __schema {{ {aliases} }} }}"
    for _ in range(2):
        with pytest.raises(DocumentError) as rejected:
            cache.resolve_operation(text, None)
        (error,) = rejected.value.errors
        assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
        assert f"at most {introspection.MAX_INTROSPECTION_VALUES} values" in error["message"]
        monkeypatch.setattr(introspection, "execute_sync", None)


async def test_both_transports_answer_introspection_with_all_options(
    app: AppProcess, http: httpx.AsyncClient, log_dir: Path
) -> None:
    body = {"query": EVERYTHING, "operationName": "IntrospectionQuery"}
    settings = {**app.environment, "SLOTLOCK_INTROSPECTION": "on"}
    with app_process(settings, log_dir) as introspecting:
        response = await http.post(introspecting.url + "/graphql", json=body)
        assert response.status_code == 200
        types = response.json()["data"]["__schema"]["types"]
        assert len(types) == len(executable_schema.type_map)
        async with open_websocket(introspecting) as opened:
            await opened.send({"id": "1", "type": "subscribe", "payload": body})
            assert (await opened.receive())["payload"] == response.json()
