"""What stays in memory: documents in a bounded cache, and little of each subscription."""

import gc
from contextlib import aclosing
from time import monotonic
from typing import Any

import pytest
from graphql import DocumentNode, parse

from slotlock.api.app_state import open_app_state
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.selected_slot import SelectedSlot
from slotlock.graphql.context import ClientInfo
from slotlock.graphql.execution import document_cache
from slotlock.graphql.execution.document_cache import (
    MAX_CACHED_CHARACTERS,
    DocumentCache,
    DocumentError,
)
from slotlock.graphql.execution.segmented_cache import PROBATION_S, SegmentedCache
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.graphql.schema.schema import executable_schema
from slotlock.services.container import utc_now
from tests.support.apps.processes import app_settings
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.stores.slots import insert_slot

PUPIL, TEACHER, ATTACKER = "192.0.2.1", "198.51.100.1", "203.0.113.1"
MAX_DOCUMENTS, MAX_REJECTIONS = 50, 50
EVENTS_PER_ROUND = 300
MAX_ROUNDS = 6


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> DocumentCache:
    """Return an empty cache for fewer documents than that of a server."""
    monkeypatch.setattr(document_cache, "MAX_CACHED_DOCUMENTS", MAX_DOCUMENTS)
    monkeypatch.setattr(document_cache, "MAX_CACHED_REJECTIONS", MAX_REJECTIONS)
    return DocumentCache(executable_schema, introspection=True)


def test_the_operations_of_a_text_share_one_parsed_document(cache: DocumentCache) -> None:
    text = "query A { __typename } query B { me { id } }"
    first = cache.resolve_operation(text, "A")
    second = cache.resolve_operation(str(text), "B")
    assert first.document is second.document
    assert first.name != second.name
    assert cache.resolve_operation(text + " ", "A").document is not first.document


def is_evicted_by_new_documents(cache: DocumentCache, text: str) -> bool:
    """Return whether new documents of another address evict a document."""
    document = cache.resolve_operation(text, None, PUPIL).document
    for number in range(MAX_DOCUMENTS):
        cache.resolve_operation(f"{{ a{number}: __typename }}", None, ATTACKER)
    return cache.resolve_operation(text, None, PUPIL).document is not document


def test_new_documents_of_one_address_evict_no_document_that_two_addresses_use(
    cache: DocumentCache,
) -> None:
    cache.resolve_operation("{ __typename }", None, TEACHER)
    assert not is_evicted_by_new_documents(cache, "{ __typename }")


def test_new_documents_of_one_address_evict_no_document_that_another_uses_for_longer(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.resolve_operation("{ __typename }", None, PUPIL)
    later = monotonic() + PROBATION_S
    monkeypatch.setattr(cache._accepted, "_clock", lambda: later)
    assert not is_evicted_by_new_documents(cache, "{ __typename }")


def test_control_without_a_protected_segment_they_evict_it(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SegmentedCache, "_is_in_use", lambda *_: False)
    cache.resolve_operation("{ __typename }", None, TEACHER)
    assert is_evicted_by_new_documents(cache, "{ __typename }")


def test_documents_that_nobody_uses_again_are_evicted(cache: DocumentCache) -> None:
    assert is_evicted_by_new_documents(cache, "{ __typename }")


def test_long_texts_evict_others_before_the_cache_is_full(cache: DocumentCache) -> None:
    first = cache.resolve_operation("{ __typename }", None).document
    for number in range(MAX_CACHED_CHARACTERS // 10_000):
        cache.resolve_operation(f"{{ a{number}: __typename }}".ljust(10_000), None)
    assert cache.resolve_operation("{ __typename }", None).document is not first


async def test_the_server_names_the_address_of_each_request_to_the_cache(
    servers: EmbeddedServers,
) -> None:
    settings = app_settings(servers, "memory")
    async with open_app_state(settings, development=False) as state:
        server, request = state.graphql_server, {"query": "{ __typename }"}
        documents = server.document_cache
        for address, is_protected in ((PUPIL, False), (PUPIL, False), (TEACHER, True)):
            await server.parse_request(request, None, ClientInfo(address, None))
            assert (documents.find_operation(request["query"], None) is not None) is is_protected


def test_an_invalid_text_is_rejected_again_without_parsing(
    cache: DocumentCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def recording_parse(text: str, **options: Any) -> DocumentNode:
        parsed.append(text)
        return parse(text, **options)

    monkeypatch.setattr(document_cache, "parse", recording_parse)
    invalid_texts = ["{", "{ nothing }", "{" + "__typename " * 16 + "}"]
    for text in [*invalid_texts, *invalid_texts]:
        with pytest.raises(DocumentError):
            cache.resolve_operation(text, None)
    assert parsed == invalid_texts


def test_invalid_texts_evict_no_valid_document(cache: DocumentCache) -> None:
    valid_document = cache.resolve_operation("{ __typename }", None).document
    for number in range(MAX_DOCUMENTS + MAX_REJECTIONS):
        with pytest.raises(DocumentError):
            cache.resolve_operation(f"{{ nothing{number} }}", None)
    assert cache.resolve_operation("{ __typename }", None).document is valid_document


async def test_a_subscription_stores_no_slots_and_nothing_of_its_past_events(
    servers: EmbeddedServers,
) -> None:
    settings = app_settings(servers, "memory")
    async with open_app_state(settings, development=False) as state:
        server = state.graphql_server
        slot_id = await insert_slot(server.services)
        operation = server.document_cache.resolve_operation(WATCH_AVAILABILITY, None)
        variables = {"slots": [f"slot_{slot_id}"]}
        stream = execute_stream(operation, variables, server.create_context(None))
        async with aclosing(stream) as results:

            async def object_count_after_events(first_version: int) -> int:
                """Publish a round of events, read their results and count all objects."""
                for version in range(first_version, first_version + EVENTS_PER_ROUND):
                    availability = Availability(
                        slot_id, version, 5, 5, SlotStatus.PUBLISHED, utc_now()
                    )
                    server.services.availability.publish(availability)
                    assert (await anext(results)).body["data"]
                gc.collect()
                return len(gc.get_objects())

            assert (await anext(results)).body["data"]
            gc.collect()
            # Other tests of the process may hold slots of theirs.
            slots = [each for each in gc.get_objects() if type(each) in (SelectedSlot, SlotState)]
            assert slot_id not in [getattr(each.slot, "id", None) for each in slots]
            # A leak would grow in every round. Other objects of the process (a heartbeat, a cache
            # that fills) grow in single rounds only.
            counts = [await object_count_after_events(10)]
            growth = [EVENTS_PER_ROUND]
            while growth[-1] >= EVENTS_PER_ROUND and len(growth) <= MAX_ROUNDS:
                first_version = 10 + len(counts) * EVENTS_PER_ROUND
                counts.append(await object_count_after_events(first_version))
                growth.append(counts[-1] - counts[-2])
    assert min(growth) < EVENTS_PER_ROUND, counts
