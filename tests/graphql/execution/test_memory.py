"""What stays in memory: documents in a bounded cache, and little of each subscription."""

import gc
from contextlib import aclosing
from typing import Any

import pytest
from graphql import DocumentNode, parse

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.selected_slot import SelectedSlot
from slotlock.graphql.execution import document_cache
from slotlock.graphql.execution.document_cache import (
    MAX_CACHED_CHARACTERS,
    MAX_CACHED_DOCUMENTS,
    MAX_CACHED_REJECTIONS,
    DocumentCache,
    DocumentError,
)
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.graphql.schema.schema import executable_schema
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, check_written
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.domain.builders import build_slot

EVENTS_PER_ROUND = 300
MAX_ROUNDS = 6


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


def test_a_text_in_use_is_not_evicted(cache: DocumentCache) -> None:
    used, unused = "{ used: __typename }", "{ unused: __typename }"
    used_document = cache.resolve_operation(used, None).document
    unused_document = cache.resolve_operation(unused, None).document
    for number in range(MAX_CACHED_DOCUMENTS - 1):
        cache.resolve_operation(f"{{ a{number}: __typename }}", None)
        assert cache.resolve_operation(used, None).document is used_document
    assert cache.resolve_operation(unused, None).document is not unused_document


def test_long_texts_evict_others_before_the_cache_is_full(cache: DocumentCache) -> None:
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

    monkeypatch.setattr(document_cache, "parse", recording_parse)
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


async def test_a_subscription_stores_no_slots_and_nothing_of_its_past_events(
    servers: EmbeddedServers,
) -> None:
    settings = Settings(
        mongo_url=database_url(servers, "memory"),
        redis_url=servers.redis_url,
        secret_key=(SecretStr(SECRET),),
    )
    async with open_app_state(settings, development=False) as state:
        server, slot_id = state.graphql_server, new_slot_id()
        new_slots = WriteSet((), new_slots=(build_slot(5, id=slot_id),))
        assert check_written(await server.services.slot_writer.commit(new_slots))
        del new_slots
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
