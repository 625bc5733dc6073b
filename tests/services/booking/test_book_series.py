"""Booking a series through two processes: races, lost locks and repeated requests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked, NoneBooked, SeriesBooked
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    KeyReused,
    NothingToBook,
    SlotFull,
)
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.book import MAX_SERIES_CLAIMS, SeriesMode
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.ids import new_campaign_id, new_series_id, new_slot_id
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.booking import book
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.book_series import SeriesRequest, book_series
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.container import Services
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import database_url
from tests.support.apps.variants.slot_writer import write_slots_one_by_one
from tests.support.domain.builders import HOUR, NOW, build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.model.service_pair import (
    ManualClock,
    PausableSlotWriter,
    open_services,
)
from tests.support.stores.late_store import ADA, BOB
from tests.support.stores.slots import insert_new_slots

ALL, FREE = SeriesMode.ALL_OR_NONE, SeriesMode.WHAT_IS_FREE
BOTH_MODES = pytest.mark.parametrize("mode", SeriesMode)
WEEK = timedelta(weeks=1)


class SeriesScene:
    """Two processes on one database, with a clock and the numbers that were charged."""

    def __init__(self, clock: ManualClock, *processes: Services) -> None:
        self.clock = clock
        self.processes = processes
        self.charged: list[int] = []

    async def charge(self, slot_count: int) -> None:
        """Note a charge."""
        self.charged.append(slot_count)

    async def insert_series(self, count: int = 4, capacity: int = 1, **facts: object) -> SeriesId:
        """Insert weekly slots, the first a day from now, and return the series."""
        series_id = new_series_id()
        starts = [NOW + timedelta(days=1) + n * WEEK for n in range(count)]
        slots = [
            build_slot(
                capacity, id=new_slot_id(), start=at, end=at + HOUR, series_id=series_id, **facts
            )
            for at in starts
        ]
        await insert_new_slots(self.processes[0].slot_writer._database, *slots)
        return series_id

    async def find_slots(self, series_id: SeriesId) -> list[SlotState]:
        """Return the slots of a series with their bookings."""
        return await self.processes[0].slots.find_by_series(series_id, self.clock())

    async def booked_users(self, series_id: SeriesId) -> list[list[UserId]]:
        """Return the users of the bookings in each slot of a series."""
        slots = [slot.id for slot in await self.find_slots(series_id)]
        rosters = [await self.processes[0].slots.find_with_roster(slot_id) for slot_id in slots]
        return [[booking.user_id for booking in roster.bookings] for roster in rosters if roster]

    async def book(
        self,
        caller: Caller,
        series_id: SeriesId,
        mode: SeriesMode,
        process: int = 0,
        **options: Any,
    ) -> object:
        """Book a series for the caller and return the outcome.

        The caller waits: the other process may not have released its locks yet.
        """
        request = SeriesRequest(series_id, caller.user_id, mode)
        booking_options = BookingOptions(**{"wait_s": 20.0, **options})
        result = await book_series(
            self.processes[process], caller, request, booking_options, self.charge
        )
        return result.outcome

    async def book_slot(self, caller: Caller, slot_id: SlotId) -> BookingChangeRequest:
        """Book one slot and return the request to change the booking."""
        result = await book.book_slot(
            self.processes[1], caller, slot_id, caller.user_id, BookingOptions()
        )
        assert isinstance(result.outcome, Booked)
        return BookingChangeRequest(slot_id, result.outcome.booking.id, caller)

    async def interrupted_by(
        self, series_id: SeriesId, mode: SeriesMode, slots: slice
    ) -> tuple[object, list[list[UserId]]]:
        """Let Ada lose her locks before her write, and Bob book some of the slots meanwhile.

        Return Ada's outcome and the users of the bookings in each slot.
        """
        writer = self.processes[0].slot_writer
        assert isinstance(writer, PausableSlotWriter)
        reached = writer.pause_next_commit()
        adas = asyncio.create_task(self.book(ADA, series_id, mode))
        await reached.wait()
        found = await self.find_slots(series_id)
        lock_keys = [lock_key(slot.id) for slot in found]
        await self.processes[0].locks.pipeline.send("DEL", *lock_keys)
        for slot in found[slots]:
            await self.book_slot(BOB, slot.id)
        writer.resume_event.set()
        return await adas, await self.booked_users(series_id)


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[SeriesScene]:
    """Yield two processes."""
    url, clock = database_url(servers, "series_bookings"), ManualClock(NOW)
    async with AsyncExitStack() as stack:
        processes = [await open_services(stack, url, servers.redis_url, clock) for _ in range(2)]
        yield SeriesScene(clock, *processes)


async def test_of_two_users_who_book_a_series_at_once_one_has_all_and_the_other_nothing(
    scene: SeriesScene,
) -> None:
    for _ in range(5):
        series_id = await scene.insert_series(8)
        outcomes = await asyncio.gather(
            *(
                scene.book(caller, series_id, ALL, process)
                for process, caller in enumerate((ADA, BOB))
            )
        )
        assert {type(outcome) for outcome in outcomes} == {SeriesBooked, NoneBooked}
        winner = (ADA, BOB)[isinstance(outcomes[1], SeriesBooked)]
        assert await scene.booked_users(series_id) == [[winner.user_id]] * 8


async def test_two_users_who_book_what_is_free_at_once_share_no_slot(scene: SeriesScene) -> None:
    series_id = await scene.insert_series(8)
    outcomes = await asyncio.gather(
        *(scene.book(caller, series_id, FREE, process) for process, caller in enumerate((ADA, BOB)))
    )
    assert {type(outcome) for outcome in outcomes} == {SeriesBooked, NoneBooked}
    assert {len(users) for users in await scene.booked_users(series_id)} == {1}


async def test_a_series_of_which_one_slot_is_taken_before_the_write_is_not_booked(
    scene: SeriesScene,
) -> None:
    series_id = await scene.insert_series()
    outcome, users = await scene.interrupted_by(series_id, ALL, slice(3, 4))
    assert isinstance(outcome, NoneBooked)
    assert [type(each) for each in outcome.refusals] == [type(None)] * 3 + [SlotFull]
    assert users == [[], [], [], [BOB.user_id]]


async def test_what_is_free_is_decided_again_if_a_slot_is_taken_before_the_write(
    scene: SeriesScene,
) -> None:
    series_id = await scene.insert_series()
    outcome, users = await scene.interrupted_by(series_id, FREE, slice(1, 3))
    assert isinstance(outcome, SeriesBooked)
    assert [type(each) for each in outcome.outcomes] == [Booked, SlotFull, SlotFull, Booked]
    assert users == [[ADA.user_id], [BOB.user_id], [BOB.user_id], [ADA.user_id]]


async def test_control_without_the_version_two_users_have_the_same_places(
    scene: SeriesScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        slot_document_updates, "version_filter", lambda before: {"_id": ObjectId(before.id)}
    )
    series_id = await scene.insert_series()
    outcome, users = await scene.interrupted_by(series_id, ALL, slice(0, 4))
    assert isinstance(outcome, SeriesBooked)
    assert {len(each) for each in users} == {2}


async def test_control_without_the_transaction_a_refused_series_is_booked_in_part(
    scene: SeriesScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = SlotWriter._commit_transaction
    monkeypatch.setattr(SlotWriter, "_commit_transaction", original)  # restored after the test
    write_slots_one_by_one()
    series_id = await scene.insert_series()
    outcome, users = await scene.interrupted_by(series_id, ALL, slice(3, 4))
    assert isinstance(outcome, NoneBooked)
    assert users == [[ADA.user_id]] * 3 + [[BOB.user_id]]


@BOTH_MODES
async def test_simultaneous_requests_with_one_key_have_one_outcome_and_one_booking_a_slot(
    scene: SeriesScene, mode: SeriesMode
) -> None:
    series_id = await scene.insert_series(capacity=9)
    outcomes = await asyncio.gather(
        *(scene.book(ADA, series_id, mode, n % 2, key=series_id) for n in range(6))
    )
    assert outcomes == [outcomes[0]] * 6
    assert isinstance(outcomes[0], SeriesBooked)
    assert await scene.booked_users(series_id) == [[ADA.user_id]] * 4


async def test_a_repeated_request_books_no_slot_that_became_free_since(scene: SeriesScene) -> None:
    series_id = await scene.insert_series(3)
    second = (await scene.find_slots(series_id))[1]
    bobs = await scene.book_slot(BOB, second.id)
    first = await scene.book(ADA, series_id, FREE, key=series_id)
    await change_booking(scene.processes[0], cancel, bobs)
    assert await scene.book(ADA, series_id, FREE, 1, key=series_id) == first
    assert await scene.booked_users(series_id) == [[ADA.user_id], [], [ADA.user_id]]
    assert isinstance(await scene.book(ADA, series_id, ALL, key=series_id), KeyReused)
    # A new key, or none, is a new request.
    last = await scene.book(ADA, series_id, FREE)
    assert isinstance(last, SeriesBooked)
    assert [type(each) for each in last.outcomes] == [AlreadyBooked, Booked, AlreadyBooked]


async def test_the_outcome_of_a_key_stays_the_same_after_the_last_slot_has_started(
    scene: SeriesScene,
) -> None:
    series_id = await scene.insert_series(2)
    first = await scene.book(ADA, series_id, ALL, key=series_id)
    scene.clock.advance(5 * WEEK)
    assert await scene.book(ADA, series_id, ALL, key=series_id) == first
    assert await scene.book(ADA, series_id, ALL) == NothingToBook(series_id)


async def test_each_slot_to_book_is_charged_and_a_repeated_request_is_not(
    scene: SeriesScene,
) -> None:
    series_id = await scene.insert_series(4)
    scene.clock.advance(timedelta(days=2))
    for _ in range(2):
        assert isinstance(await scene.book(ADA, series_id, ALL, key=series_id), SeriesBooked)
    assert scene.charged == [3]


async def test_as_many_slots_as_one_request_may_book_are_booked_at_once(
    scene: SeriesScene,
) -> None:
    # Their user's other bookings count, so that every slot is compared with every other one.
    terms = build_terms(campaign_id=new_campaign_id(), forbid_overlap=True, max_bookings=1000)
    series_id = await scene.insert_series(MAX_SERIES_CLAIMS, terms=terms)
    outcome = await scene.book(ADA, series_id, ALL, key=series_id)
    assert isinstance(outcome, SeriesBooked)
    slots = await scene.find_slots(series_id)
    assert [slot.booked_count for slot in slots] == [1] * MAX_SERIES_CLAIMS
