"""Each text is parsed, measured and validated once, as long as there is room to remember it."""

from typing import Any

import pytest
from graphql import DocumentNode, parse

from slotlock.graphql.execution import documents as documents_room
from slotlock.graphql.execution.documents import (
    MAX_CACHED_CHARACTERS,
    MAX_CACHED_DOCUMENTS,
    MAX_CACHED_REJECTIONS,
    DocumentCache,
    DocumentError,
)
from slotlock.graphql.schema.schema import executable_schema


def test_a_text_is_parsed_once() -> None:
    documents = DocumentCache(executable_schema, introspection=True)
    text = "query A { __typename } query B { me { id } }"
    first, second = (
        documents.resolve_operation(text, "A"),
        documents.resolve_operation(str(text), "B"),
    )
    assert first.document is second.document
    assert first.name != second.name
    assert documents.resolve_operation(text + " ", "A").document is not first.document


def test_only_the_texts_used_lately_are_remembered() -> None:
    documents = DocumentCache(executable_schema, introspection=True)
    used, unused = "{ used: __typename }", "{ unused: __typename }"
    stored, forgotten = (
        documents.resolve_operation(text, None).document for text in (used, unused)
    )
    for number in range(MAX_CACHED_DOCUMENTS - 1):
        documents.resolve_operation(f"{{ a{number}: __typename }}", None)
        assert documents.resolve_operation(used, None).document is stored
    assert documents.resolve_operation(unused, None).document is not forgotten


def test_long_texts_take_room_from_each_other() -> None:
    documents = DocumentCache(executable_schema, introspection=True)
    first = documents.resolve_operation("{ __typename }", None).document
    for number in range(MAX_CACHED_CHARACTERS // 10_000):
        documents.resolve_operation(f"{{ a{number}: __typename }}".ljust(10_000), None)
    assert documents.resolve_operation("{ __typename }", None).document is not first


def test_a_text_is_refused_again_without_being_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def counted(text: str, **how: Any) -> DocumentNode:
        checked.append(text)
        return parse(text, **how)

    monkeypatch.setattr(documents_room, "parse", counted)
    documents = DocumentCache(executable_schema, introspection=True)
    refused = ["{", "{ nothing }", "{" + "__typename " * 16 + "}"]
    for text in [*refused, *refused]:
        with pytest.raises(DocumentError):
            documents.resolve_operation(text, None)
    assert checked == refused


def test_nonsense_drives_out_no_document_that_is_good() -> None:
    documents = DocumentCache(executable_schema, introspection=True)
    good = documents.resolve_operation("{ __typename }", None).document
    for number in range(MAX_CACHED_DOCUMENTS + MAX_CACHED_REJECTIONS):
        with pytest.raises(DocumentError):
            documents.resolve_operation(f"{{ nothing{number} }}", None)
    assert documents.resolve_operation("{ __typename }", None).document is good
