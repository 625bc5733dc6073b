"""Keys of tickets at the desk, when the line is away or was lost."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import RequestLost, Ticket
from slotlock.domain.booking.outcomes import Booked
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, execute_booking
from tests.support.apps.processes import free_port
from tests.support.domain.builders import build_slot
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Desks whose Redis can be taken away."""
    with open_service_pair(with_own_redis_database(servers), "ticket_keys") as opened:
        yield opened


def test_served_at_once_for_want_of_a_line_the_same_key_gives_the_same_ticket(
    pair: ServicePair,
) -> None:
    def ticking() -> datetime:
        pair.clock.advance(timedelta(milliseconds=1))
        return pair.clock.now

    async def sent_twice() -> tuple[object, object]:
        nowhere = AutoPipeline(redis_client(f"redis://127.0.0.1:{free_port()}"))
        desk = replace(pair.services[0], admission_queue=AdmissionQueue(nowhere), now=ticking)
        ada, slot_id = pair.callers[0], new_slot_id()
        made = build_slot(3, id=slot_id, start=MORNING.replace(year=2041))
        assert check_written(await desk.slot_writer.commit(ChangeSet((), new_slots=(made,))))
        first = await request_booking(desk, ada, slot_id, ada.user_id, BookingOptions(key="k"))
        again = await request_booking(desk, ada, slot_id, ada.user_id, BookingOptions(key="k"))
        await nowhere.close()
        return first, again

    first, again = pair.runner.run(sent_twice())
    assert isinstance(first, Ticket)
    assert first == again


def test_a_request_that_was_told_lost_is_granted_to_nobody_who_still_has_it(
    pair: ServicePair,
) -> None:
    async def served_late() -> list[Any]:
        desk, organiser, ada = pair.services[0], pair.callers[-1], pair.callers[0]
        slot_id = new_slot_id()
        made = build_slot(3, id=slot_id, start=MORNING.replace(year=2041))
        assert check_written(await desk.slot_writer.commit(ChangeSet((), new_slots=(made,))))
        slip = BookingOptions(key="k").to_idempotency_key(organiser, "book", slot_id, ada.user_id)
        assert slip is not None
        await desk.idempotency_records.save(slip.lost_record(MORNING))
        late = replace(slip, requested_at=MORNING)
        asking = BookSlotCommand.create(organiser, slot_id, ada.user_id, False, late)
        granted = await execute_booking(desk, asking, 0.0)
        asked_again = await execute_booking(desk, replace(asking, idempotency_key=slip), 0.0)
        return [granted, asked_again]

    granted, asked_again = pair.runner.run(served_late())
    assert isinstance(granted, RequestLost)
    assert isinstance(asked_again, Booked)
