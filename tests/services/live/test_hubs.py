"""The hubs on a real database, without a network: resyncs, slow readers and shutdown."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest

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
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite, WriteSet, check_written
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from slotlock.services.admission.tickets import load_tickets
from slotlock.services.container import utc_now
from slotlock.services.live.availability_hub import AvailabilityHub, AvailabilitySubscription
from slotlock.services.live.booking_event_hub import BookingEventHub
from slotlock.services.live.campaign_slots import CampaignSlotsHub
from slotlock.services.live.fan_out import FanOutQueue
from slotlock.services.live.ticket_hub import TicketHub
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot, with_facts
from tests.support.domain.campaign_builders import build_terms
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
        states = subscription.states()
        assert (await anext(states)).version == 1
        await change_silently(database, slot)
        hub.on_slots_unknown()
        await hub.resync()
        assert (await anext(states)).version == 2
        await states.aclose()


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
        states = subscription.states()
        assert (await anext(states)).status is SlotStatus.PUBLISHED
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
        last = await anext(states)
        assert (last.version, last.status) == (2, SlotStatus.CANCELLED)
        assert not subscription.has_pending
        await states.aclose()


async def test_control_without_a_resync_a_lost_message_is_not_replaced(
    hub: AvailabilityHub, database: Database
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]) as subscription:
        await anext(subscription.states())
        await change_silently(database, slot)
        assert not subscription.has_pending


async def test_a_state_published_during_the_first_read_replaces_what_was_read(
    hub: AvailabilityHub, database: Database
) -> None:
    slot = await insert_slot(database)
    async with hub.subscribe([slot.id]) as subscription:
        newer = availability(slot.id, 9)
        hub.publish(newer)
        states = subscription.states()
        assert await anext(states) == newer
        assert not subscription.has_pending
        await states.aclose()


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
