"""What one sweep does: no slot keeps the holds of others alive, and no number is too large."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.booking import book
from slotlock.services.workers import hold_sweeper
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.service_pair import ServicePair, open_service_pair


@pytest.fixture(scope="module")
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Two desks on a database of their own, where nobody sweeps unasked."""
    with open_service_pair(servers, "sweeping") as opened:
        yield opened


def held_slots(pair: ServicePair, size: int) -> list[SlotId]:
    """So many slots, each with a hold; the first runs out first."""
    play, ada = ModelChecker(pair), pair.callers[0]
    slot_ids = [SlotId(play.add_slot(SlotShape())) for _ in range(size)]
    for slot_id in slot_ids:
        pair.clock.advance(timedelta(seconds=1))
        wish = book.BookingOptions(hold=True)
        pair.runner.run(book.book(pair.services[0], ada, slot_id, ada.user_id, wish))
    return slot_ids


def fill_with_holds(play: ModelChecker, size: int) -> ObjectId:
    """A slot in which so many people hold a place, written past the desk."""
    slot_id = ObjectId(play.add_slot(SlotShape(capacity=size)))
    pair = play.pair
    now, until = play.now, play.now + timedelta(minutes=5)
    held = []
    for _ in range(size):
        user_id = ObjectId()
        log = [{"at": now, "by": user_id, "action": "held", "status": "held", "heldUntil": until}]
        id_ = ObjectId(new_booking_id())
        held.append({"id": id_, "user": user_id, "history": log, "heldUntil": until})
    changes = {"bookings": held, "remaining": 0, "nextDeadline": until}
    pair.database["slots"].update_one({"_id": slot_id}, {"$set": changes})
    return slot_id


def sweep(pair: ServicePair) -> None:
    """Sweep once, when every hold has run out."""
    pair.clock.advance(timedelta(minutes=6))
    pair.runner.run(hold_sweeper.sweep(pair.services[0]))


def still_held(pair: ServicePair) -> set[SlotId]:
    """The slots in which a hold takes a place."""
    found = pair.database["slots"].find({"remaining": 0}, {"_id": 1})
    return {SlotId(str(document["_id"])) for document in found}


POISONS: dict[str, dict[str, Any]] = {
    "a booking of nobody": {"$unset": {"bookings.0.user": ""}},
    "an unknown deed": {"$set": {"bookings.0.history.0.action": "danced"}},
    "a booking without its times": {"$unset": {"bookings.0.history": ""}},
    "an unknown status": {"$set": {"status": "lost"}},
    "bookings are a number": {"$set": {"bookings": 5}},
    "no bookings at all": {"$unset": {"bookings": ""}},
    "the record is a number": {"$set": {"bookings.0.history": 5}},
    "no waiting list": {"$unset": {"waitlist": ""}},
    "no title": {"$unset": {"title": ""}},
    "a version that is none": {"$set": {"version": "x"}},
}


@pytest.mark.parametrize("poison", POISONS)
@pytest.mark.parametrize("place", [0, 2])
def test_a_slot_that_cannot_be_read_keeps_no_hold_of_another_alive(
    pair: ServicePair, poison: str, place: int
) -> None:
    slot_ids = held_slots(pair, 5)
    pair.database["slots"].update_one({"_id": ObjectId(slot_ids[place])}, POISONS[poison])
    sweep(pair)
    assert still_held(pair) == {slot_ids[place]}
    assert pair.database["ended_bookings"].count_documents({}) == 4


def test_a_slot_that_cannot_be_written_keeps_no_hold_of_another_alive(pair: ServicePair) -> None:
    slot_ids = held_slots(pair, 5)
    refused = {"_id": {"$ne": ObjectId(slot_ids[1])}}
    pair.database.command("collMod", "slots", validator=refused)
    try:
        sweep(pair)
        assert still_held(pair) == {slot_ids[1]}
    finally:
        pair.database.command("collMod", "slots", validator={})


def test_a_slot_that_cannot_be_read_is_not_tried_again_at_once(pair: ServicePair) -> None:
    slot_ids = held_slots(pair, 2)
    pair.database["slots"].update_one({"_id": ObjectId(slot_ids[0])}, {"$set": {"bookings": 5}})
    sweep(pair)
    assert pair.runner.run(pair.services[0].slots.find_due(pair.clock.now, 10)) == []


def test_a_slot_that_cannot_be_read_fails_for_its_own_readers_alone(pair: ServicePair) -> None:
    poisoned, healthy = held_slots(pair, 2)
    pair.database["slots"].update_one({"_id": ObjectId(poisoned)}, {"$set": {"bookings": 5}})

    async def read_both() -> list[Any]:
        now, slots = pair.clock.now, pair.services[0].slots
        looks = (slots.find(SlotQuery(slot_id, now)) for slot_id in (poisoned, healthy))
        return await asyncio.gather(*looks, return_exceptions=True)

    failed, found = pair.runner.run(read_both())
    assert isinstance(failed, Exception)
    assert found.id == healthy


def test_more_than_1000_bookings_that_end_in_one_sweep_all_end(pair: ServicePair) -> None:
    play, sizes = ModelChecker(pair), (600, 600, 1000, 5)
    slot_ids = [fill_with_holds(play, size) for size in sizes]
    sweep(pair)
    for slot_id, size in zip(slot_ids, sizes, strict=True):
        (slot,) = pair.database["slots"].find({"_id": slot_id})
        assert (slot["remaining"], slot["bookings"], "nextDeadline" in slot) == (size, [], False)
        ended = pair.database["ended_bookings"]
        assert ended.count_documents({"slot": slot_id, "history.1.action": "expired"}) == size
