"""A sweep ends expired holds and waitlists of started slots, and finishes what others left."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import BookingChangeRequest, LoadedState
from slotlock.domain.booking.rules.booking_changes import confirm
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.redis.keys import availability_channel
from slotlock.services import batch_decision
from slotlock.services.booking import book, waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.slots import editing
from slotlock.services.workers import hold_sweeper
from tests.support.domain.builders import build_patch
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.scenario import ModelScenario
from tests.support.model.service_pair import ServicePair
from tests.support.stores.lock_nodes import release_lease

OWN_REDIS = True
# Members that no other test of this module needs.
BANNED_BEFORE_JOINING, BANNED_WHILE_WAITING = 2, 3


def create_held_slots(pair: ServicePair, count: int) -> list[SlotId]:
    """Create slots with one place each and hold it. The first hold expires first."""
    checker, caller = ModelChecker(pair), pair.callers[0]
    slot_ids = [SlotId(checker.add_slot(SlotShape())) for _ in range(count)]
    for slot_id in slot_ids:
        pair.clock.advance(timedelta(seconds=1))
        options = book.BookingOptions(hold=True)
        pair.runner.run(book.book_slot(pair.services[0], caller, slot_id, caller.user_id, options))
    return slot_ids


def insert_slot_with_holds(checker: ModelChecker, count: int) -> ObjectId:
    """Create a slot and write this many holds directly to MongoDB."""
    slot_id = ObjectId(checker.add_slot(SlotShape(capacity=count)))
    now, until = checker.now, checker.now + timedelta(minutes=5)
    bookings = []
    for _ in range(count):
        user_id, booking_id = ObjectId(), ObjectId(new_booking_id())
        entry = {"at": now, "by": user_id, "action": "held", "status": "held", "heldUntil": until}
        booking = {"id": booking_id, "user": user_id, "history": [entry], "heldUntil": until}
        bookings.append(booking)
    changes = {"bookings": bookings, "remaining": 0, "nextDeadline": until}
    checker.pair.database["slots"].update_one({"_id": slot_id}, {"$set": changes})
    return slot_id


def sweep_expired(pair: ServicePair) -> None:
    """Let all holds expire and sweep once."""
    pair.clock.advance(timedelta(minutes=6))
    pair.runner.run(hold_sweeper.sweep(pair.services[0]))


def full_slot_ids(pair: ServicePair) -> set[SlotId]:
    """Return the slots whose place is still held."""
    documents = pair.database["slots"].find({"remaining": 0}, {"_id": 1})
    return {SlotId(str(document["_id"])) for document in documents}


DAMAGES: dict[str, dict[str, Any]] = {
    "booking without user": {"$unset": {"bookings.0.user": ""}},
    "booking without history": {"$unset": {"bookings.0.history": ""}},
    "bookings are a number": {"$set": {"bookings": 5}},
    "no bookings": {"$unset": {"bookings": ""}},
    "history is a number": {"$set": {"bookings.0.history": 5}},
    "no waitlist": {"$unset": {"waitlist": ""}},
    "no title": {"$unset": {"title": ""}},
    "version is a string": {"$set": {"version": "x"}},
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("index", [0, 2])
def test_other_holds_expire_although_a_slot_cannot_be_read(
    pair: ServicePair, damage: str, index: int
) -> None:
    slot_ids = create_held_slots(pair, 5)
    pair.database["slots"].update_one({"_id": ObjectId(slot_ids[index])}, DAMAGES[damage])
    sweep_expired(pair)
    assert full_slot_ids(pair) == {slot_ids[index]}
    assert pair.database["ended_bookings"].count_documents({}) == 4


def test_other_holds_expire_although_a_slot_cannot_be_written(pair: ServicePair) -> None:
    slot_ids = create_held_slots(pair, 5)
    rejects_one = {"_id": {"$ne": ObjectId(slot_ids[1])}}
    pair.database.command("collMod", "slots", validator=rejects_one)
    try:
        sweep_expired(pair)
        assert full_slot_ids(pair) == {slot_ids[1]}
    finally:
        pair.database.command("collMod", "slots", validator={})


def test_a_sweep_publishes_the_places_that_are_free_again(pair: ServicePair) -> None:
    (slot_id,) = create_held_slots(pair, 1)
    # What is published without waiting was sent before this has a reply.
    send_all = pair.services[0].locks.is_held
    pair.runner.run(send_all(slot_id))
    with pair.redis.pubsub() as messages:  # type: ignore[no-untyped-call]
        messages.subscribe(availability_channel(slot_id))
        assert messages.get_message(timeout=20)["type"] == "subscribe"
        sweep_expired(pair)
        pair.runner.run(send_all(slot_id))
        published = messages.get_message(timeout=20)
    assert published is not None
    assert published["type"] == "message"


def test_slots_that_were_written_together_and_conflicted_are_swept_apart(pair: ServicePair) -> None:
    slot_ids, writer = create_held_slots(pair, 2), pair.slot_writer(0)
    pair.clock.advance(timedelta(minutes=6))

    async def sweep_during_another_write() -> None:
        reached = writer.pause_next_commit()
        sweeping = asyncio.create_task(hold_sweeper.sweep(pair.services[0]))
        await reached.wait()
        changed = {"_id": ObjectId(slot_ids[0])}
        pair.database["slots"].update_one(changed, {"$inc": {"version": 1}})
        writer.resume_event.set()
        await sweeping

    pair.runner.run(sweep_during_another_write())
    assert full_slot_ids(pair).isdisjoint(slot_ids)


def test_a_slot_whose_hold_was_confirmed_is_due_once(pair: ServicePair) -> None:
    (slot_id,) = create_held_slots(pair, 1)
    (booking_id,) = pair.database["slots"].distinct("bookings.id", {"_id": ObjectId(slot_id)})
    request = BookingChangeRequest(slot_id, BookingId(str(booking_id)), pair.callers[0])
    pair.runner.run(change_booking(pair.services[0], confirm, request))
    sweep_expired(pair)
    assert slot_id in full_slot_ids(pair)
    assert slot_id not in pair.runner.run(pair.services[0].slots.find_due(pair.clock.now, 10))


def damage_bookings(pair: ServicePair, slot_id: SlotId) -> None:
    """Make a slot unreadable."""
    pair.database["slots"].update_one({"_id": ObjectId(slot_id)}, {"$set": {"bookings": 5}})


def test_a_slot_that_cannot_be_read_is_not_due_again_at_once(pair: ServicePair) -> None:
    slot_ids = create_held_slots(pair, 2)
    damage_bookings(pair, slot_ids[0])
    sweep_expired(pair)
    assert pair.runner.run(pair.services[0].slots.find_due(pair.clock.now, 10)) == {}


def test_a_slot_that_cannot_be_read_fails_only_its_own_query_of_a_batch(pair: ServicePair) -> None:
    damaged, intact = create_held_slots(pair, 2)
    damage_bookings(pair, damaged)

    async def find_both() -> list[Any]:
        now, slots = pair.clock.now, pair.services[0].slots
        queries = (slots.find(SlotQuery(slot_id, now)) for slot_id in (damaged, intact))
        return await asyncio.gather(*queries, return_exceptions=True)

    failed, found = pair.runner.run(find_both())
    assert isinstance(failed, Exception)
    assert found.id == intact


def test_one_sweep_ends_more_holds_than_fit_into_one_transaction(pair: ServicePair) -> None:
    checker, counts = ModelChecker(pair), (600, 600, 1000, 5)
    slot_ids = [insert_slot_with_holds(checker, count) for count in counts]
    sweep_expired(pair)
    for slot_id, count in zip(slot_ids, counts, strict=True):
        (slot,) = pair.database["slots"].find({"_id": slot_id})
        assert (slot["remaining"], slot["bookings"], "nextDeadline" in slot) == (count, [], False)
        query = {"slot": slot_id, "history.1.action": "expired"}
        assert pair.database["ended_bookings"].count_documents(query) == count


def ban(pair: ServicePair, caller: Caller) -> None:
    """Ban a user without removing them from waiting lists."""
    services, organizer_id = pair.services[0], pair.organizer.user_id
    (user,) = pair.runner.run(services.users.find_many([caller.user_id])).values()
    assert pair.runner.run(services.bans.ban(user, organizer_id, None, pair.clock.now))


def waitlist_length(pair: ServicePair, slot_id: SlotId) -> int:
    """Return how many users wait for a slot."""
    (slot,) = pair.database["slots"].find({"_id": ObjectId(slot_id)})
    return len(slot["waitlist"])


def test_a_user_who_joins_a_waitlist_just_after_being_banned_is_removed(pair: ServicePair) -> None:
    scenario, banned = ModelScenario(pair), pair.callers[BANNED_BEFORE_JOINING]
    slot_id = SlotId(scenario.add_slot(SlotShape(capacity=1)))
    scenario.book(1, slot_id)
    ban(pair, banned)
    # The request was authenticated before the ban.
    pair.runner.run(waitlist.join(pair.services[0], slot_id, banned.user_id, 0.0))
    assert waitlist_length(pair, slot_id) == 1
    pair.runner.run(waitlist.remove_recently_banned(pair.services[1]))
    assert waitlist_length(pair, slot_id) == 0


def test_a_banned_user_is_removed_from_a_locked_slot_once_it_is_released(
    pair: ServicePair,
) -> None:
    scenario, services = ModelScenario(pair), pair.services[0]
    slot_id = SlotId(scenario.add_slot(SlotShape(capacity=1)))
    scenario.book(1, slot_id)
    scenario.perform("join", BANNED_WHILE_WAITING, slot_id)
    ban(pair, pair.callers[BANNED_WHILE_WAITING])
    lease = pair.runner.run(pair.services[1].locks.acquire(slot_id, wait_s=20.0))
    assert lease is not None
    pair.runner.run(waitlist.remove_recently_banned(services))
    assert waitlist_length(pair, slot_id) == 1
    pair.runner.run(release_lease(pair.services[1].locks, lease))
    pair.runner.run(waitlist.remove_recently_banned(services))
    assert waitlist_length(pair, slot_id) == 0


def add_waitlist(pair: ServicePair, *members: int) -> SlotId:
    """Create a full slot that starts in an hour, for which these members wait."""
    scenario = ModelScenario(pair)
    slot_id = SlotId(scenario.add_slot(SlotShape(capacity=1, starts_in_minutes=60)))
    scenario.book(0, slot_id)
    for member in members:
        assert scenario.perform("join", member, slot_id)[0] == "WaitlistJoined"
    return slot_id


def sweep_after(pair: ServicePair, time: timedelta) -> None:
    """Advance the clock and sweep once."""
    pair.clock.advance(time)
    pair.runner.run(hold_sweeper.sweep(pair.services[0]))


def find_ended_entries(pair: ServicePair, slot_id: SlotId) -> list[dict[str, Any]]:
    """Return the waitlist entries of a slot that ended without a booking."""
    return [*pair.database["ended_waitlist_entries"].find({"slot": ObjectId(slot_id)})]


def test_a_waitlist_ends_when_its_slot_starts(pair: ServicePair) -> None:
    slot_id = add_waitlist(pair, 1, 4)
    sweep_after(pair, timedelta(minutes=60) - timedelta(milliseconds=1))
    assert waitlist_length(pair, slot_id) == 2
    sweep_after(pair, timedelta(milliseconds=1))
    assert waitlist_length(pair, slot_id) == 0
    ended = find_ended_entries(pair, slot_id)
    assert [each["by"] for each in ended] == [None, None]
    assert {each["at"] for each in ended} == {pair.clock.now}
    assert pair.runner.run(pair.services[0].slots.find_due(pair.clock.now, 10)) == {}


def test_control_without_its_end_a_waitlist_stays_for_ever(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_none(loaded: LoadedState, _: datetime) -> LoadedState:
        return loaded

    slot_id = add_waitlist(pair, 1, 4)
    with monkeypatch.context() as patched:
        patched.setattr(batch_decision, "end_waitlists", end_none)
        sweep_after(pair, timedelta(days=1))
        assert waitlist_length(pair, slot_id) == 2
    sweep_after(pair, timedelta(0))
    assert waitlist_length(pair, slot_id) == 0


def test_the_waitlist_of_a_moved_slot_ends_at_the_new_start(pair: ServicePair) -> None:
    slot_id = add_waitlist(pair, 1)
    services, organizer = pair.services[0], pair.organizer
    start = pair.clock.now + timedelta(hours=3)
    patch = build_patch(start=start, end=start + timedelta(hours=1))
    pair.runner.run(editing.edit(services, slot_id, patch, organizer.user_id))
    sweep_after(pair, timedelta(hours=2))
    assert waitlist_length(pair, slot_id) == 1
    sweep_after(pair, timedelta(hours=1))
    assert waitlist_length(pair, slot_id) == 0


def test_what_a_process_with_an_older_folding_writes_is_repaired(pair: ServicePair) -> None:
    slot_id = {"_id": ObjectId(ModelChecker(pair).add_slot(SlotShape()))}
    edit = {"title": "Übung", "titleKey": "übung", "searchWords": ["#3", "übung"]}
    pair.database["slots"].update_one(slot_id, {"$set": edit})
    pair.runner.run(hold_sweeper.finish_interrupted_changes(pair.services[0]))
    stored = pair.database["slots"].find_one(slot_id)
    assert stored is not None
    assert stored["titleKey"] == "ubung"


class Pauses:
    """Replaces the pauses of a sweeper: they end by an event of the process or by `end` alone."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[float] = asyncio.Queue()
        self.end = asyncio.Event()

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        """Stand in for `wait_for_event`."""
        self.begun.put_nowait(timeout_s)
        waits = [asyncio.create_task(each.wait()) for each in (event, self.end)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.end.clear()
            for each in waits:
                each.cancel()


@pytest.mark.parametrize("writer", ["own process", "other process"])
def test_a_sweeper_pauses_until_the_next_deadline_that_it_finds_or_its_process_writes(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    pair.database["slots"].delete_many({})
    slot_id, services, is_own = add_waitlist(pair), pair.services[0], writer == "own process"
    pair.clock.advance(timedelta(minutes=60) - timedelta(seconds=2))

    async def join_while_sweeping() -> None:
        pauses = Pauses()
        monkeypatch.setattr(hold_sweeper, "wait_for_event", pauses.wait)
        async with hold_sweeper.hold_sweeper(services, services.locks):
            idle_s = await pauses.begun.get()
            assert hold_sweeper.IDLE_INTERVAL_S[0] <= idle_s <= hold_sweeper.IDLE_INTERVAL_S[1]
            joining = services if is_own else pair.services[1]
            await waitlist.join(joining, slot_id, pair.callers[1].user_id, 20.0)
            if not is_own:
                # The control of the event: without it, the sweeper learns of it by its interval.
                assert pauses.begun.empty()
                pauses.end.set()
            assert await pauses.begun.get() == pytest.approx(2 + hold_sweeper.RESOLUTION_S)
            pair.clock.advance(timedelta(seconds=2))
            pauses.end.set()
            assert await pauses.begun.get() == hold_sweeper.LEASE_PAUSE_S

    # Longer than the two seconds, in any case.
    monkeypatch.setattr(hold_sweeper, "IDLE_INTERVAL_S", (2.1, 2.5))
    pair.runner.run(join_while_sweeping())
    assert waitlist_length(pair, slot_id) == 0
    assert len(find_ended_entries(pair, slot_id)) == 1
