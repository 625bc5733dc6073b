"""A subscription costs what it costs however many events it has told."""

import gc
from contextlib import aclosing

from slotlock.api.app_state import open_app_state
from slotlock.api.settings.settings import Settings
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.graphql.execution.executor import execute_stream
from slotlock.graphql.transport.server import GraphQLServer
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET, database_url
from tests.support.clients.client import WATCH_AVAILABILITY
from tests.support.domain.builders import build_slot

EVENTS = 300
MOST_ROUNDS = 6


async def test_a_subscription_keeps_nothing_of_the_events_it_has_told(
    servers: EmbeddedServers,
) -> None:
    settings = Settings.model_validate(
        {
            "mongo_url": database_url(servers, "memory"),
            "redis_url": servers.redis_url,
            "secret_key": SECRET,
        }
    )
    async with open_app_state(settings, development=False) as rooms:
        conversation: GraphQLServer = rooms.graphql_server
        services, slot_id = conversation.services, new_slot_id()
        assert check_written(
            await services.slot_writer.commit(ChangeSet((), new_slots=(build_slot(5, id=slot_id),)))
        )
        watch = conversation.document_cache.resolve_operation(WATCH_AVAILABILITY, None)
        variables = {"slots": [f"slot_{slot_id}"]}
        async with aclosing(
            execute_stream(watch, variables, conversation.create_context(None))
        ) as received:

            async def tell(first: int) -> int:
                for version in range(first, first + EVENTS):
                    state = Availability(slot_id, version, 5, 5, SlotStatus.PUBLISHED, utc_now())
                    services.availability.publish(state)
                    assert (await anext(received)).body["data"]
                gc.collect()
                return len(gc.get_objects())

            assert (await anext(received)).body["data"]
            # What events left behind would be there after every round; what else the process keeps
            # (a heartbeat's exchange, a cache that fills) grows in one or another.
            counts = [await tell(10)]
            growth = [EVENTS]
            while growth[-1] >= EVENTS and len(growth) <= MOST_ROUNDS:
                counts.append(await tell(10 + len(counts) * EVENTS))
                growth.append(counts[-1] - counts[-2])
    assert min(growth) < EVENTS, counts
