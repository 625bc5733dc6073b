"""A subscription takes little memory, and no more with each event."""

import gc
from contextlib import aclosing

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.reading import SlotReading
from slotlock.graphql.execution.subscriptions import execute_stream
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.domain.builders import build_slot

EVENTS_PER_ROUND = 300
MAX_ROUNDS = 6


async def test_a_subscription_stores_no_slots_and_nothing_of_its_past_events(
    servers: EmbeddedServers,
) -> None:
    settings = Settings.model_validate(
        {
            "mongo_url": database_url(servers, "memory"),
            "redis_url": servers.redis_url,
            "secret_key": SECRET,
        }
    )
    async with open_app_state(settings, development=False) as state:
        server, slot_id = state.graphql_server, new_slot_id()
        new_slots = ChangeSet((), new_slots=(build_slot(5, id=slot_id),))
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
            slots = [each for each in gc.get_objects() if type(each) in (SlotReading, SlotState)]
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
