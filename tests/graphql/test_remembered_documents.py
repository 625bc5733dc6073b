"""Each text is parsed, measured and validated once, as long as there is room to remember it."""

from typing import Any

import pytest
from graphql import DocumentNode, parse

from slotlock.graphql import documents as documents_room
from slotlock.graphql.documents import (
    MAX_REFUSED,
    MAX_REMEMBERED,
    MAX_REMEMBERED_LENGTH,
    DocumentError,
    Documents,
)
from slotlock.graphql.schema import executable


def test_a_text_is_parsed_once() -> None:
    documents = Documents(executable, introspection=True)
    text = "query A { __typename } query B { me { id } }"
    first, second = documents.operation(text, "A"), documents.operation(str(text), "B")
    assert first.document is second.document
    assert first.name != second.name
    assert documents.operation(text + " ", "A").document is not first.document


def test_only_the_texts_used_lately_are_remembered() -> None:
    documents = Documents(executable, introspection=True)
    used, unused = "{ used: __typename }", "{ unused: __typename }"
    kept, forgotten = (documents.operation(text, None).document for text in (used, unused))
    for number in range(MAX_REMEMBERED - 1):
        documents.operation(f"{{ a{number}: __typename }}", None)
        assert documents.operation(used, None).document is kept
    assert documents.operation(unused, None).document is not forgotten


def test_long_texts_take_room_from_each_other() -> None:
    documents = Documents(executable, introspection=True)
    first = documents.operation("{ __typename }", None).document
    for number in range(MAX_REMEMBERED_LENGTH // 10_000):
        documents.operation(f"{{ a{number}: __typename }}".ljust(10_000), None)
    assert documents.operation("{ __typename }", None).document is not first


def test_a_text_is_refused_again_without_being_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def counted(text: str, **how: Any) -> DocumentNode:
        checked.append(text)
        return parse(text, **how)

    monkeypatch.setattr(documents_room, "parse", counted)
    documents = Documents(executable, introspection=True)
    refused = ["{", "{ nothing }", "{" + "__typename " * 16 + "}"]
    for text in [*refused, *refused]:
        with pytest.raises(DocumentError):
            documents.operation(text, None)
    assert checked == refused


def test_nonsense_drives_out_no_document_that_is_good() -> None:
    documents = Documents(executable, introspection=True)
    good = documents.operation("{ __typename }", None).document
    for number in range(MAX_REMEMBERED + MAX_REFUSED):
        with pytest.raises(DocumentError):
            documents.operation(f"{{ nothing{number} }}", None)
    assert documents.operation("{ __typename }", None).document is good
