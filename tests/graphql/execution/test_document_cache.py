"""The document cache parses each text once, and bounds what it remembers."""

from typing import Any

import pytest
from graphql import DocumentNode, parse

from slotlock.graphql.execution import documents
from slotlock.graphql.execution.documents import (
    MAX_CACHED_CHARACTERS,
    MAX_CACHED_DOCUMENTS,
    MAX_CACHED_REJECTIONS,
    DocumentCache,
    DocumentError,
)
from slotlock.graphql.schema.schema import executable_schema


@pytest.fixture
def cache() -> DocumentCache:
    """Return an empty cache."""
    return DocumentCache(executable_schema, introspection=True)


def test_the_operations_of_a_text_share_one_parsed_document(cache: DocumentCache) -> None:
    text = "query A { __typename } query B { me { id } }"
    first = cache.resolve_operation(text, "A")
    second = cache.resolve_operation(str(text), "B")
    assert first.document is second.document
    assert first.name != second.name
    assert cache.resolve_operation(text + " ", "A").document is not first.document


def test_the_least_recently_used_text_is_evicted(cache: DocumentCache) -> None:
    used, unused = "{ used: __typename }", "{ unused: __typename }"
    used_document = cache.resolve_operation(used, None).document
    unused_document = cache.resolve_operation(unused, None).document
    for number in range(MAX_CACHED_DOCUMENTS - 1):
        cache.resolve_operation(f"{{ a{number}: __typename }}", None)
        assert cache.resolve_operation(used, None).document is used_document
    assert cache.resolve_operation(unused, None).document is not unused_document


def test_long_texts_evict_others_before_the_cache_has_its_number_of_texts(
    cache: DocumentCache,
) -> None:
    first = cache.resolve_operation("{ __typename }", None).document
    for number in range(MAX_CACHED_CHARACTERS // 10_000):
        cache.resolve_operation(f"{{ a{number}: __typename }}".ljust(10_000), None)
    assert cache.resolve_operation("{ __typename }", None).document is not first


def test_an_invalid_text_is_rejected_again_without_parsing(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def recording_parse(text: str, **options: Any) -> DocumentNode:
        parsed.append(text)
        return parse(text, **options)

    monkeypatch.setattr(documents, "parse", recording_parse)
    invalid_texts = ["{", "{ nothing }", "{" + "__typename " * 16 + "}"]
    for text in [*invalid_texts, *invalid_texts]:
        with pytest.raises(DocumentError):
            cache.resolve_operation(text, None)
    assert parsed == invalid_texts


def test_invalid_texts_evict_no_valid_document(cache: DocumentCache) -> None:
    valid_document = cache.resolve_operation("{ __typename }", None).document
    for number in range(MAX_CACHED_DOCUMENTS + MAX_CACHED_REJECTIONS):
        with pytest.raises(DocumentError):
            cache.resolve_operation(f"{{ nothing{number} }}", None)
    assert cache.resolve_operation("{ __typename }", None).document is valid_document
