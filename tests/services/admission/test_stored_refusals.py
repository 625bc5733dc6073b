"""A stored refusal is final, and no request is decided before one that is tried again."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking_refusals import NotYetOpen
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.slots.editing import edit
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, check_written
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.commands.current_slot import with_current_slot
from slotlock.services.commands.idempotency import recorded_result
from slotlock.services.idempotency_key import IdempotencyKey
from tests.support.domain.builders import HOUR, build_patch, build_slot
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.stores.slot_store import decided_update


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Open two instances of the services."""
    with open_service_pair(servers, "stored_refusals") as opened:
        yield opened


def test_a_refusal_stays_not_yet_open_after_the_campaign_has_opened(pair: ServicePair) -> None:
    opens_at = MORNING + timedelta(hours=1)

    async def deliver_twice() -> None:
        services, ada, slot_id = pair.services[0], pair.callers[0], new_slot_id()
        closes_at = opens_at + timedelta(days=1)
        terms = CampaignTerms(CampaignId("c" * 24), 1, True, opens_at, closes_at)
        start = MORNING.replace(year=2041)
        slot = build_slot(3, id=slot_id, start=start, end=start + HOUR, terms=terms)
        assert check_written(await services.slot_writer.commit(WriteSet((), new_slots=(slot,))))
        key = IdempotencyKey.for_request(ada.user_id, "k", slot_id)
        hashes = (key.key_hash, key.short_request_hash)
        booking = QueuedBooking(slot_id, ada.user_id, ada.user_id, False, *hashes)
        entry = StreamEntry("1-0", {}, booking, MORNING)
        assert await serve_batch(services, slot_id, [entry]) == [entry]
        renamed = decided_update(slot, edit, build_patch(title="Pilates"), MORNING)
        assert check_written(await services.slot_writer.commit(WriteSet((renamed,))))
        pair.clock.now = opens_at
        # The worker stopped before it removed the request from the queue.
        assert await serve_batch(services, slot_id, [entry]) == [entry]
        record = await services.idempotency_records.find(key.record_id)
        assert record is not None
        assert record.slots == ()  # its readers see the slot as it is by now
        result = await with_current_slot(services, recorded_result(record), ada.user_id)
        assert result.outcome == NotYetOpen(slot_id, opens_at)
        assert result.slots[slot_id].slot.title == "Pilates"

    pair.runner.run(deliver_twice())


def test_a_request_of_an_organizer_does_not_overtake_one_that_is_tried_again(
    pair: ServicePair,
) -> None:
    async def deliver() -> None:
        services, member, slot_id = pair.services[0], pair.callers[0], new_slot_id()
        # The process that accepted the request of the member has a clock that is ahead.
        opens_at = MORNING + timedelta(seconds=1)
        closes_at = opens_at + timedelta(days=1)
        terms = CampaignTerms(CampaignId("c" * 24), 1, True, opens_at, closes_at)
        start = MORNING.replace(year=2041)
        slot = build_slot(1, id=slot_id, start=start, end=start + HOUR, terms=terms)
        assert check_written(await services.slot_writer.commit(WriteSet((), new_slots=(slot,))))
        entries: list[StreamEntry] = []
        for caller, user in ((member, member), (pair.organizer, pair.callers[1])):
            key = IdempotencyKey.for_request(caller.user_id, "k", slot_id)
            hashes = (key.key_hash, key.short_request_hash)
            booking = QueuedBooking(slot_id, user.user_id, caller.user_id, False, *hashes)
            entries.append(StreamEntry(f"{len(entries)}-0", {}, booking, MORNING))
        assert await serve_batch(services, slot_id, entries) == []
        pair.clock.now = opens_at
        assert await serve_batch(services, slot_id, entries) == entries
        stored = await services.slots.find_with_roster(slot_id)
        assert stored is not None
        assert [each.user_id for each in stored.bookings] == [member.user_id]

    pair.runner.run(deliver())
