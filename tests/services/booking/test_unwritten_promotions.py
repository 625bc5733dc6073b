"""A refusal never relies on a promotion, or a booking of its batch, that is not written."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.booking.booking_refusals import AlreadyBooked, Locked, SlotFull
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.ids import new_waitlist_entry_id
from slotlock.services import batch_decision
from slotlock.services.booking.book import BookingOptions, BookSlotCommand, book_slot
from slotlock.services.booking.waitlist import JoinWaitlist, LeaveWaitlist, join
from slotlock.services.commands.commit import decide_and_commit
from tests.support.model.operations import MORNING
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import with_own_redis_database
from tests.support.stores.slots import insert_slot

LONGER_THAN_A_HOLD = timedelta(hours=1)


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    with open_service_pair(with_own_redis_database(servers), "unwritten-promotions") as opened:
        yield opened


async def let_the_only_place_become_free(pair: ServicePair) -> SlotId:
    """Let the hold of caller 0 expire, for which caller 1 waits, and write nothing of it."""
    services, (holder, waiting) = pair.services[0], pair.callers[:2]
    slot_id = await insert_slot(services, 1, start=MORNING.replace(year=2041))
    await book_slot(services, holder, slot_id, holder.user_id, BookingOptions(hold=True))
    await join(services, slot_id, waiting.user_id, 0)
    pair.clock.advance(LONGER_THAN_A_HOLD)
    return slot_id


def test_a_place_that_the_same_batch_could_not_write_refuses_nobody(pair: ServicePair) -> None:
    services, writer = pair.services[0], pair.slot_writer(0)

    async def book_the_last_place_twice() -> list[type[object]]:
        slot_id = await insert_slot(services, 1, start=MORNING.replace(year=2041))
        commands = [
            BookSlotCommand.create(caller, slot_id, caller.user_id, False, None)
            for caller in pair.callers[:2]
        ]
        paused = writer.pause_next_commit()
        batch = asyncio.create_task(decide_and_commit(services, commands, max_attempts=1))
        await paused.wait()
        pair.database["slots"].update_one({"_id": ObjectId(slot_id)}, {"$inc": {"version": 1}})
        writer.resume_event.set()
        return [type(result.outcome) for result in (await batch).results]

    assert pair.runner.run(book_the_last_place_twice()) == [Locked, Locked]


def new_join(pair: ServicePair, slot_id: SlotId, caller: Caller) -> JoinWaitlist:
    """Return the command that joins the waiting list."""
    entry_id, since = new_waitlist_entry_id(), pair.clock.now
    return JoinWaitlist(WaitlistEntry(entry_id, slot_id, caller.user_id, since))


def test_a_user_who_will_be_promoted_is_not_refused_before_that_is_written(
    pair: ServicePair,
) -> None:
    services, (_, waiting, third) = pair.services[0], pair.callers[:3]

    async def preview_all() -> list[object]:
        slot_id = await let_the_only_place_become_free(pair)
        commands = (
            new_join(pair, slot_id, waiting),
            LeaveWaitlist(slot_id, waiting.user_id, waiting.user_id),
            BookSlotCommand.create(waiting, slot_id, waiting.user_id, False, None),
            BookSlotCommand.create(third, slot_id, third.user_id, False, None),
        )
        results = await asyncio.gather(*map(services.previews.decide, commands))
        return [result and type(result.outcome) for result in results]

    assert pair.runner.run(preview_all()) == [None, None, None, SlotFull]


async def join_again_while_another_process_writes(pair: ServicePair) -> tuple[object, list[str]]:
    """Let a version appear before the write of a second join; return its outcome.

    Also returns the ids of the bookings that MongoDB has then.
    """
    slot_id = await let_the_only_place_become_free(pair)
    writer, query = pair.slot_writer(0), {"_id": ObjectId(slot_id)}
    paused = writer.pause_next_commit()
    command = new_join(pair, slot_id, pair.callers[1])
    joining = asyncio.create_task(decide_and_commit(pair.services[0], [command]))
    await paused.wait()
    pair.database["slots"].update_one(query, {"$inc": {"version": 1}})
    writer.resume_event.set()
    outcome = (await joining).results[0].outcome
    stored = pair.database["slots"].find_one(query)
    assert stored is not None
    return outcome, [str(each["id"]) for each in stored["bookings"]]


def test_a_booking_that_a_refusal_shows_is_stored_although_its_first_write_failed(
    pair: ServicePair,
) -> None:
    outcome, stored_ids = pair.runner.run(join_again_while_another_process_writes(pair))
    assert isinstance(outcome, AlreadyBooked)
    assert stored_ids == [outcome.booking.id]


def test_control_a_refusal_shows_a_booking_that_is_not_stored(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_decision, "_promoted_users", lambda *_states: frozenset())
    outcome, stored_ids = pair.runner.run(join_again_while_another_process_writes(pair))
    assert isinstance(outcome, AlreadyBooked)
    assert outcome.booking.id not in stored_ids
