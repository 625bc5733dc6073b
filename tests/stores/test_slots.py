"""Writes that travel together: each is guarded by itself, and each caller is told their own."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.desk import utc_now
from slotlock.domain.booking import Decision, Party, book, cancel
from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.slots import Slot
from slotlock.stores import mongo
from slotlock.stores.batches import Batches
from slotlock.stores.slots import Slots, new_booking_id, new_slot_id
from tests.domain.test_booking import slot
from tests.support.processes import database_url

ADA, BEN = UserId("a" * 24), UserId("b" * 24)


@pytest.fixture
async def slots(servers: Servers) -> AsyncIterator[Slots]:
    """A store of slots."""
    client, database = mongo.connect(database_url(servers, "slots"))
    try:
        yield Slots(database)
    finally:
        await client.close()


async def kept(slots: Slots, capacity: int = 1) -> Slot:
    """A new slot in the store."""
    new = slot(capacity, id=new_slot_id())
    await slots.add(new)
    return new


def booking_by(person: UserId, before: Slot) -> Decision[object]:
    """The decision that gives a person a place."""
    decision = book(before, [Party(person, new_booking_id())], utc_now())
    return Decision(decision.slot, decision.outcome, decision.added)


async def test_of_two_decisions_on_one_version_in_one_batch_one_is_written(slots: Slots) -> None:
    before = await kept(slots)
    ada, ben = booking_by(ADA, before), booking_by(BEN, before)
    written = await asyncio.gather(slots.commit(before, ada), slots.commit(before, ben))
    assert list(written) == [True, False]
    after = await slots.look_at_roster(before.id)
    assert after is not None
    assert after.bookings == ada.added


async def test_a_mismatch_in_a_batch_is_told_to_its_caller_and_to_no_other(slots: Slots) -> None:
    fresh = [await kept(slots) for _ in range(30)]
    stale = await kept(slots)
    assert await slots.commit(stale, booking_by(ADA, stale))
    wanted = [*fresh[:15], stale, *fresh[15:]]
    written = await asyncio.gather(*(slots.commit(s, booking_by(BEN, s)) for s in wanted))
    assert written == [True] * 15 + [False] + [True] * 15


async def test_a_booking_that_was_written_and_cancelled_before_it_was_told_counts_as_written(
    slots: Slots, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, stale = await kept(slots), await kept(slots)
    assert await slots.commit(stale, booking_by(ADA, stale))
    read_back = slots._made

    async def cancelled_first(wanted: list[tuple[Slot, Decision[object]]]) -> set[str]:
        now = await slots.look(before.id, [BEN])
        assert now is not None
        organiser = Caller(ADA, Role.ORGANIZER, "session", utc_now())
        assert await slots.commit(now, cancel(now, now.bookings[0].id, organiser, utc_now()))
        return set(await read_back(wanted))

    monkeypatch.setattr(slots, "_made", cancelled_first)
    both = (
        slots.commit(before, booking_by(BEN, before)),
        slots.commit(stale, booking_by(BEN, stale)),
    )
    assert list(await asyncio.gather(*both)) == [True, False]


async def test_looks_that_travel_together_bring_each_caller_their_own_slot(slots: Slots) -> None:
    many = [await kept(slots) for _ in range(20)]
    missing = new_slot_id()
    ids = [one.id for one in many] + [missing]
    found = await asyncio.gather(*(slots.look(slot_id, [ADA]) for slot_id in ids))
    assert [one and one.id for one in found] == [*ids[:-1], None]


async def test_an_item_that_fails_fails_its_own_caller_only() -> None:
    async def run(items: list[int]) -> list[int | Exception]:
        return [ValueError("odd") if item % 2 else item for item in items]

    batches: Batches[int, int] = Batches(run, largest=3)
    results = await asyncio.gather(*map(batches.do, range(8)), return_exceptions=True)
    assert [r for r in results if isinstance(r, int)] == [0, 2, 4, 6]
    assert [str(r) for r in results if isinstance(r, ValueError)] == ["odd"] * 4


async def test_a_batch_that_fails_fails_all_its_callers_and_the_next_one_runs() -> None:
    failures = iter([True, False])

    async def run(items: list[int]) -> list[int | Exception]:
        if next(failures):
            raise OSError("away")
        return list(items)

    batches: Batches[int, int] = Batches(run)
    first = await asyncio.gather(batches.do(1), batches.do(2), return_exceptions=True)
    assert [str(error) for error in first] == ["away", "away"]
    assert await batches.do(3) == 3


async def test_a_caller_who_leaves_takes_nothing_back_and_harms_no_other() -> None:
    ran: list[int] = []

    async def run(items: list[int]) -> list[int | Exception]:
        await asyncio.sleep(0)
        ran.extend(items)
        return list(items)

    batches: Batches[int, int] = Batches(run)
    leaving = asyncio.create_task(batches.do(1))
    staying = asyncio.create_task(batches.do(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == 2
    assert ran == [1, 2]
