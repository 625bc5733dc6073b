"""Requests for bookings that do not pass through the queue, or whose ticket is lost."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import RequestLost, Ticket
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, execute_booking
from slotlock.services.container import Services
from tests.support.apps.processes import free_port
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database
from tests.support.stores.slots import insert_slot


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Yield services with a queue that no worker serves."""
    with open_service_pair(with_own_redis_database(servers), "enqueue") as opened:
        yield opened


async def add_slot(services: Services, admission: SlotAdmission = SlotAdmission.ANY) -> SlotId:
    """Insert a slot with three places."""
    return await insert_slot(services, 3, start=MORNING.replace(year=2041), admission=admission)


@pytest.mark.parametrize("admission", [SlotAdmission.ANY, SlotAdmission.QUEUE_ONLY])
def test_without_redis_the_same_key_returns_the_same_ticket(
    pair: ServicePair, admission: SlotAdmission
) -> None:
    def ticking_clock() -> datetime:
        pair.clock.advance(timedelta(milliseconds=1))
        return pair.clock.now

    async def request_twice() -> tuple[object, object]:
        unreachable = AutoPipeline(redis_client(f"redis://127.0.0.1:{free_port()}"))
        services = copy(pair.services[0])
        services.admission_queue, services.now = AdmissionQueue(unreachable), ticking_clock
        caller, slot_id = pair.callers[0], await add_slot(services, admission)
        options = BookingOptions(key="k")
        first = await request_booking(services, caller, slot_id, caller.user_id, options)
        second = await request_booking(services, caller, slot_id, caller.user_id, options)
        await unreachable.close()
        return first.outcome, second.outcome

    first, second = pair.runner.run(request_twice())
    assert isinstance(first, Ticket)
    assert first == second


def test_a_queued_request_whose_ticket_is_lost_is_not_booked_but_a_new_one_is(
    pair: ServicePair,
) -> None:
    async def execute_after_loss() -> tuple[object, object]:
        services, organizer, user = pair.services[0], pair.callers[-1], pair.callers[0]
        slot_id, options = await add_slot(services), BookingOptions(key="k")
        key = options.to_idempotency_key(organizer, BookSlotCommand.name, slot_id, user.user_id)
        assert key is not None
        await services.idempotency_records.save(key.lost_record(MORNING))
        queued_key = replace(key, requested_at=MORNING)
        command = BookSlotCommand.create(organizer, slot_id, user.user_id, False, queued_key)
        queued = await execute_booking(services, command, 0.0)
        new = await execute_booking(services, replace(command, idempotency_key=key), 0.0)
        return queued.outcome, new.outcome

    queued, new = pair.runner.run(execute_after_loss())
    assert isinstance(queued, RequestLost)
    assert isinstance(new, Booked)
