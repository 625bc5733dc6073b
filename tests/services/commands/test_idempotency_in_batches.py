"""One idempotency key with two requests in one batch, or in two processes without Redis."""

import asyncio
from typing import Any

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.locks.redis_locks import RedisLocks
from slotlock.services.booking.book import BookingOptions, book_slot
from slotlock.services.commands import idempotency
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.service_pair import ServicePair
from tests.support.polling import eventually

KEY = "the same"
# The number of the user to book for, and whether to hold. The organizer has the number 5.
Question = tuple[int, bool]


async def _served_together(
    pair: ServicePair, slot_id: SlotId, questions: list[Question]
) -> list[Any]:
    """Execute these requests of one organizer with one key in one batch; return the outcomes."""
    services = pair.services[0]
    lease = await pair.services[1].locks.acquire(slot_id)
    assert lease is not None
    sends: list[asyncio.Task[Any]] = []
    for whom, hold in questions:
        options = BookingOptions(hold, wait_s=20, key=KEY)
        user = pair.callers[whom].user_id
        booking = book_slot(services, pair.organizer, slot_id, user, options)
        sends.append(asyncio.create_task(booking))

        async def all_stand() -> bool:
            line = services.caller_queues._queues.get(slot_id)
            return line is not None and len(line.callers) == len(sends)

        await eventually(all_stand, "each request waits")
        # Redis loses the order of the key's sends, or the next would not get as far.
        for key in pair.redis.scan_iter("slotlock:{idempotency:*}:lock"):
            pair.redis.delete(key)
    await pair.services[1].locks.release(lease)
    return [result.outcome for result in await asyncio.gather(*sends)]


@pytest.mark.parametrize(
    ("one", "other"),
    [((5, False), (5, True)), ((5, True), (5, False)), ((0, False), (1, False))],
    ids=["a booking, a hold", "a hold, a booking", "for one, for another"],
)
def test_two_requests_with_one_key_in_one_batch_have_one_effect(
    pair: ServicePair, one: Question, other: Question
) -> None:
    slot_id = SlotId(ModelChecker(pair).add_slot(SlotShape(capacity=5)))
    first, second = pair.runner.run(_served_together(pair, slot_id, [one, other]))
    assert (type(first).__name__, type(second).__name__) == ("Booked", "KeyReused")
    (slot,) = pair.database["slots"].find()
    assert slot["remaining"] == 4
    (stored,) = slot["bookings"]
    assert str(stored["user"]) == pair.callers[one[0]].user_id
    assert ("heldUntil" in stored) == one[1]
    assert pair.database["idempotency_records"].count_documents({}) == 1


def test_repeated_requests_in_one_batch_have_one_outcome_and_another_request_reuses_the_key(
    pair: ServicePair,
) -> None:
    slot_id = SlotId(ModelChecker(pair).add_slot(SlotShape(capacity=5)))
    questions = [(0, True), (0, True), (1, True), (0, True), (0, False)]
    received = pair.runner.run(_served_together(pair, slot_id, questions))
    names = [type(outcome).__name__ for outcome in received]
    assert names == ["Booked", "Booked", "KeyReused", "Booked", "KeyReused"]
    assert len({received[place].booking.id for place in (0, 1, 3)}) == 1
    assert pair.database["slots"].count_documents({"remaining": 4}) == 1


@pytest.mark.parametrize("is_marked", [True, False], ids=["guard on", "control"])
def test_without_redis_a_request_whose_repetition_was_refused_is_not_booked(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch, is_marked: bool
) -> None:
    slot_id = SlotId(ModelChecker(pair).add_slot(SlotShape(capacity=1)))
    user, other = pair.callers[:2]

    async def acquire(*_: object) -> None:
        raise RedisUnavailableError("Redis is down", sent=False)

    monkeypatch.setattr(RedisLocks, "acquire", acquire)
    monkeypatch.setattr(RedisLocks, "acquire_each", acquire)
    if not is_marked:
        monkeypatch.setattr(idempotency, "RedisLockLease", object)

    async def refuse_while_the_first_is_under_way() -> tuple[str, str]:
        first, second = pair.services
        options = BookingOptions(key=KEY)
        reached = pair.slot_writer(0).pause_next_commit()
        under_way = asyncio.create_task(book_slot(first, user, slot_id, user.user_id, options))
        await reached.wait()
        await book_slot(second, other, slot_id, other.user_id, BookingOptions())
        refused = await book_slot(second, user, slot_id, user.user_id, options)
        free = {"$set": {"bookings": [], "remaining": 1}, "$inc": {"version": 1}}
        pair.database["slots"].update_one({}, free)
        pair.slot_writer(0).resume_event.set()
        return type(refused.outcome).__name__, type((await under_way).outcome).__name__

    refused, under_way = pair.runner.run(refuse_while_the_first_is_under_way())
    assert (refused, under_way) == ("SlotFull", "Locked" if is_marked else "Booked")
    assert pair.database["slots"].count_documents({"remaining": 1}) == int(is_marked)
