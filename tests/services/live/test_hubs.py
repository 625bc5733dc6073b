"""The hubs on a real database, without a network: resyncs, slow readers and shutdown."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest
from pymongo.errors import AutoReconnect

from slotlock.api.backend import Backend, open_backend
from slotlock.api.settings.settings import Settings
from slotlock.auth.session_streams import SessionStreams
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch
from slotlock.infrastructure.mongo.client import Database, open_database
from slotlock.infrastructure.mongo.ids import new_booking_id, new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite, WriteSet, check_written
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.infrastructure.redis.keys import (
    availability_channel,
    queue_advanced_channel,
    user_channel,
)
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.container import utc_now
from slotlock.services.live import availability_hub
from slotlock.services.live.availability_hub import AvailabilityHub, AvailabilitySubscription
from slotlock.services.live.booking_event_hub import BookingEventHub
from slotlock.services.live.campaign_slots import CampaignSlotsHub
from slotlock.services.live.fan_out import FanOutQueue
from slotlock.services.live.ticket_hub import TicketHub
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, book_place, booking_request, build_slot, with_facts
from tests.support.domain.campaign_builders import build_terms
from tests.support.model.service_pair import ManualClock
from tests.support.polling import eventually, poll_until
from tests.support.stores.query_plans import CommandRecorder, recorded_commands
from tests.support.stores.slots import insert_new_slots

__all__ = ["recorded_commands"]

# More rounds of the event loop than lie between a trigger and the end of the wait for it.
ROUNDS = 6


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a database for this module alone."""
    async with open_database(database_url(servers, "hubs")) as database:
        yield database


@pytest.fixture
def hub(database: Database) -> AvailabilityHub:
    """Return a hub that receives no messages and resyncs only on request."""
    return AvailabilityHub(SlotRepository(database), utc_now)


async def insert_slot(database: Database) -> SlotState:
    """Insert a new slot."""
    slot = build_slot(5, id=new_slot_id())
    await insert_new_slots(database, slot)
    return slot


async def change_silently(database: Database, slot: SlotState) -> None:
    """Change a slot without publishing it."""
    renamed = with_facts(slot, title="Pilates")
    update = SlotWrite(slot, replace(renamed, version=slot.version + 1))
    assert check_written(await SlotWriter(database).commit(WriteSet((update,))))


def availability(slot_id: SlotId, version: int) -> Availability:
    """Return a state of a slot."""
    return Availability(slot_id, version, 100, 50, SlotStatus.PUBLISHED, NOW)


async def test_a_resync_publishes_a_change_whose_message_was_lost(
    hub: AvailabilityHub, database: Database
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]) as subscription:
        assert subscription.take().version == 1
        await change_silently(database, slot)
        hub.on_slots_unknown()
        await hub.resync()
        assert subscription.take().version == 2


async def delete_silently(database: Database, slot: SlotState) -> None:
    """Delete a slot without publishing it."""
    changes = WriteSet((), deleted_slots=(slot,))
    assert check_written(await SlotWriter(database).commit(changes))


@pytest.mark.parametrize("noticed_by", ["comparison", "read", "change stream"])
async def test_a_deletion_whose_message_was_lost_is_published_once_as_a_cancellation(
    hub: AvailabilityHub, database: Database, noticed_by: str
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]) as subscription:
        assert subscription.take().status is SlotStatus.PUBLISHED
        await delete_silently(database, slot)
        for _ in range(2):
            match noticed_by:
                case "comparison":
                    hub.on_slots_unknown()
                case "read":
                    hub.on_slots_changed({slot.id: 2})
                case "change stream":
                    gone = ChangeBatch({}, frozenset(), frozenset(), frozenset({slot.id}))
                    hub.on_changes(gone)
            await hub.resync()
        last = subscription.take()
        assert (last.version, last.status) == (2, SlotStatus.CANCELLED)
        assert not subscription.has_pending


async def test_a_deleted_slot_with_changes_that_were_not_read_is_read_no_more(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, recorder = recorded_commands
    hub = AvailabilityHub(SlotRepository(database), utc_now)
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]):
        await delete_silently(database, slot)
        gone = frozenset({slot.id})
        hub.on_changes(ChangeBatch({slot.id: 9}, frozenset(), frozenset(), gone))
        recorder.commands.clear()
        await hub.resync()
        assert recorder.commands == []


async def test_a_gap_during_a_comparison_is_compared_again(
    hub: AvailabilityHub, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = await insert_slot(database)
    find_versions = SlotRepository.find_versions

    async def change_after(
        self: SlotRepository, slot_ids: Sequence[SlotId]
    ) -> Mapping[SlotId, int]:
        versions = await find_versions(self, slot_ids)
        await change_silently(database, slot)
        hub.on_slots_unknown()
        return versions

    async with hub.subscribe([slot.id]) as subscription:
        assert subscription.take().version == 1
        hub.on_slots_unknown()
        with monkeypatch.context() as patched:
            patched.setattr(SlotRepository, "find_versions", change_after)
            await hub.resync()
        await hub.resync()
        assert subscription.take().version == 2


async def test_the_present_state_counts_no_hold_that_expired_but_was_not_swept(
    database: Database,
) -> None:
    slot = await insert_slot(database)
    request = replace(booking_request(new_slot_id(), hold=True), booking_id=new_booking_id())
    held, booking = book_place(slot, request)
    assert check_written(await SlotWriter(database).commit(WriteSet((SlotWrite(slot, held),))))
    assert booking.held_until is not None
    for now, remaining in ((NOW, 4), (booking.held_until, 5)):
        hub = AvailabilityHub(SlotRepository(database), ManualClock(now))
        async with hub.subscribe([slot.id]) as subscription:
            assert subscription.take().remaining == remaining


async def test_control_without_a_resync_a_lost_message_is_not_replaced(
    hub: AvailabilityHub, database: Database
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]) as subscription:
        subscription.take()
        await change_silently(database, slot)
        assert not subscription.has_pending


async def test_a_state_published_during_the_first_read_replaces_what_was_read(
    hub: AvailabilityHub, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, find = await insert_slot(database), SlotRepository.find
    newer = availability(slot.id, 9)

    async def find_before_publication(self: SlotRepository, query: SlotQuery) -> SlotState | None:
        found = await find(self, query)
        hub.publish(newer)
        return found

    monkeypatch.setattr(SlotRepository, "find", find_before_publication)
    async with hub.subscribe([slot.id]) as subscription:
        assert subscription.take() == newer
        assert not subscription.has_pending


async def test_a_state_that_comes_during_a_round_reaches_those_whom_the_round_has_passed(
    hub: AvailabilityHub, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability_hub, "PUBLISH_BATCH_SIZE", 2)
    slot = await insert_slot(database)
    async with AsyncExitStack() as stack:
        subscriptions = [
            await stack.enter_async_context(hub.subscribe([slot.id])) for _ in range(5)
        ]
        states = [subscription.take() for subscription in subscriptions]
        for version in (2, 3):
            hub.publish(replace(states[0], version=version))
        assert [each.has_pending for each in subscriptions] == [True, True, False, False, False]
        for _ in range(2 * len(subscriptions)):  # more rounds of the event loop than slices
            await asyncio.sleep(0)
        assert [each.take().version for each in subscriptions] == [3] * 5


async def test_a_slow_reader_has_one_pending_state_per_slot() -> None:
    slot_ids = [SlotId("a"), SlotId("b")]
    subscription = AvailabilitySubscription(slot_ids, FanOutQueue())
    for version in range(10_000):
        for slot_id in slot_ids:
            subscription.publish(availability(slot_id, version))
    states = subscription.states()
    read = [await anext(states), await anext(states)]
    assert [(s.slot_id, s.version) for s in read] == [("a", 9_999), ("b", 9_999)]
    assert not subscription.has_pending
    await states.aclose()


def test_a_reader_is_called_back_once_until_it_has_taken_every_state() -> None:
    subscription, calls = (
        AvailabilitySubscription([SlotId("a"), SlotId("b")], FanOutQueue()),
        list[None](),
    )
    subscription.publish(availability(SlotId("a"), 1))
    subscription.on_update(lambda: calls.append(None))
    for version in range(2, 10):
        for slot_id in (SlotId("a"), SlotId("b")):
            subscription.publish(availability(slot_id, version))
    assert len(calls) == 1
    taken = [subscription.take(), subscription.take()]
    assert taken == [availability(SlotId("a"), 9), availability(SlotId("b"), 9)]
    assert not subscription.has_pending
    subscription.publish(availability(SlotId("b"), 10))
    assert len(calls) == 2


def test_a_state_that_is_not_newer_is_ignored() -> None:
    subscription = AvailabilitySubscription([SlotId("a")], FanOutQueue())
    assert subscription.publish(availability(SlotId("a"), 5))
    assert not subscription.publish(availability(SlotId("a"), 5))
    assert not subscription.publish(availability(SlotId("a"), 4))


async def test_a_hub_forgets_subscriptions_that_ended(
    hub: AvailabilityHub, database: Database
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]):
        assert hub.subscribed_slot_ids == {slot.id}
    assert not hub.subscribed_slot_ids


@pytest.fixture
async def backend(servers: EmbeddedServers) -> AsyncIterator[Backend]:
    """Yield a backend whose hubs are not started."""
    settings = Settings(mongo_url=database_url(servers, "stopping"), redis_url=servers.redis_url)
    async with open_backend(settings) as opened:
        yield opened


def start_hub(name: str, backend: Backend) -> SessionStreams | BookingEventHub | TicketHub:
    """Start a hub as the lifespan does."""
    services = backend.services
    match name:
        case "session streams":
            streams = SessionStreams()
            streams.start(SessionRepository(backend.database), lambda _: None, services.change_feed)
            return streams
        case "booking events":
            services.booking_events.start(services.slot_events, services.change_feed)
            return services.booking_events
        case _:
            load = partial(load_tickets, services)
            services.ticket_updates.start(services.slot_events, services.admission_queue, load)
            return services.ticket_updates


async def test_the_present_state_of_a_ticket_comes_first(backend: Backend) -> None:
    hub = start_hub("ticket updates", backend)
    assert isinstance(hub, TicketHub)
    ref = TicketRef(new_slot_id(), UserId("a" * 24), "0" * 32, "0" * 16, utc_now())
    async with hub.subscribe(ref) as subscription:
        assert subscription.latest is not None
    await hub.stop()


@pytest.mark.parametrize("name", ["session streams", "booking events", "ticket updates"])
@pytest.mark.parametrize("rounds", range(ROUNDS))
async def test_a_hub_stops_even_while_a_trigger_arrives(
    backend: Backend, name: str, rounds: int
) -> None:
    hub = start_hub(name, backend)
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    if isinstance(hub, SessionStreams):
        hub.recheck_all()
    else:
        hub._refresh_timer.trigger()
    for _ in range(rounds):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(hub.stop())
    # Not wait_for: a hub that swallows the cancellation would block it, too.
    done, _ = await asyncio.wait([stopping], timeout=20)
    assert stopping in done


async def test_a_resync_that_fails_is_tried_again_without_another_change(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, slot = backend.services, await insert_slot(backend.database)
    hub, find_versions = services.availability, SlotRepository.find_versions
    monkeypatch.setattr(availability_hub, "MESSAGE_DELAY_S", 0.0)

    async def fail_once(self: SlotRepository, slot_ids: Sequence[SlotId]) -> Mapping[SlotId, int]:
        monkeypatch.setattr(SlotRepository, "find_versions", find_versions)
        raise AutoReconnect("the connection is lost")

    async with hub.subscribe([slot.id]) as subscription:
        await change_silently(backend.database, slot)
        monkeypatch.setattr(SlotRepository, "find_versions", fail_once)
        hub.start(services.slot_events, services.change_feed)
        hub.on_slots_unknown()
        try:
            await eventually(lambda: subscription._latest[slot.id].version == 2, "version 2")
        finally:
            await hub.stop()


async def test_a_process_receives_nothing_about_what_nobody_watches_any_more(
    backend: Backend,
) -> None:
    services, slot = backend.services, await insert_slot(backend.database)
    user_id = UserId(new_slot_id())
    ref = TicketRef(slot.id, user_id, "0" * 32, "0" * 16, utc_now())
    channels = (
        availability_channel(slot.id),
        queue_advanced_channel(slot.id),
        user_channel(user_id),
    )

    async def counts() -> list[int]:
        reply = await services.slot_events._pipeline.send("PUBSUB", "NUMSUB", *channels)
        return [int(count) for count in reply[1::2]]

    services.slot_events.start()
    hubs = [start_hub(name, backend) for name in ("booking events", "ticket updates")]
    services.availability.start(services.slot_events, services.change_feed)
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(services.availability.subscribe([slot.id]))
            await stack.enter_async_context(services.ticket_updates.subscribe(ref))
            await stack.enter_async_context(services.booking_events.subscribe(user_id))
            await poll_until(counts, lambda each: each == [1, 1, 1], "each channel is subscribed")
        await poll_until(counts, lambda each: each == [0, 0, 0], "no channel is subscribed")
    finally:
        for hub in (*hubs, services.availability, services.slot_events):
            await hub.stop()


async def insert_slots_of(database: Database, terms: CampaignTerms, number: int) -> list[SlotId]:
    """Insert slots of a campaign, and return their ids."""
    slots = [build_slot(5, id=new_slot_id(), terms=terms) for _ in range(number)]
    await insert_new_slots(database, *slots)
    return [slot.id for slot in slots]


@pytest.fixture
def campaign_slots(recorded_commands: tuple[Database, CommandRecorder]) -> CampaignSlotsHub:
    """Return a hub that receives no changes."""
    database = recorded_commands[0]
    availability_hub = AvailabilityHub(SlotRepository(database), utc_now)
    return CampaignSlotsHub(CampaignRepository(database), availability_hub, utc_now)


async def test_a_crowd_that_watches_a_campaign_reads_its_slots_once(
    campaign_slots: CampaignSlotsHub, recorded_commands: tuple[Database, CommandRecorder]
) -> None:
    database, recorder = recorded_commands
    terms = build_terms(campaign_id=new_campaign_id())
    await Repositories(database).indexes.build_missing()
    slot_ids = await insert_slots_of(database, terms, 3)
    watch = partial(campaign_slots.subscribe, terms.campaign_id, include_hidden=False)
    async with watch() as first:
        assert {first.take().slot_id for _ in slot_ids} == set(slot_ids)
        recorder.commands.clear()
        async with AsyncExitStack() as crowd:
            for _ in range(3):
                subscription = await crowd.enter_async_context(watch())
                assert {subscription.take().slot_id for _ in slot_ids} == set(slot_ids)
        assert recorder.commands == []


async def test_a_slot_that_appeared_during_a_gap_is_added_to_a_watched_campaign(
    campaign_slots: CampaignSlotsHub, recorded_commands: tuple[Database, CommandRecorder]
) -> None:
    database, _ = recorded_commands
    terms = build_terms(campaign_id=new_campaign_id())
    await Repositories(database).indexes.build_missing()
    hidden = build_terms(campaign_id=terms.campaign_id, published=False)
    async with campaign_slots.subscribe(terms.campaign_id, include_hidden=False) as subscription:
        assert not subscription.has_pending
        await insert_slots_of(database, hidden, 1)
        (appeared,) = await insert_slots_of(database, terms, 1)
        campaign_slots._on_gap()
        await campaign_slots._add_listed()
        assert subscription.take().slot_id == appeared
        assert not subscription.has_pending
