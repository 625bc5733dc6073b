"""One key with two questions among those who are served together."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk import booking
from slotlock.domain.bookings import SlotId
from tests.support.desks import House, open_house
from tests.support.offices import until
from tests.support.play import Play, Shape

KEY = "the same"


@pytest.fixture(scope="module")
def house(servers: Servers) -> Iterator[House]:
    """Two desks on a database of their own."""
    with open_house(servers, "key_in_a_batch") as opened:
        yield opened


async def _served_together(house: House, slot_id: SlotId, holds: list[bool]) -> list[Any]:
    """What Ada is told who sends one key with these questions, all of which wait for one turn."""
    desk, ada = house.desks[0], house.people[0]
    lease = await house.desks[1].locks.acquire(slot_id)
    assert lease is not None
    sends: list[asyncio.Task[Any]] = []
    for hold in holds:
        wish = booking.Wish(hold, wait_s=20, key=KEY)
        book = booking.book(desk, ada, slot_id, ada.user_id, wish)
        sends.append(asyncio.create_task(book))

        async def all_stand() -> bool:
            line = desk.lines._lines.get(slot_id)
            return line is not None and len(line.places) == len(sends)

        await until(all_stand, "a place in line for each send")
        # Redis loses the order of the key's sends, or the next would not get as far.
        for key in house.redis.scan_iter("slotlock:{key:*}:lock"):
            house.redis.delete(key)
    await house.desks[1].locks.release(lease)
    return list(await asyncio.gather(*sends))


@pytest.mark.parametrize("holds", [[False, True], [True, False]])
def test_two_questions_under_one_key_in_one_batch_have_one_effect(
    house: House, holds: list[bool]
) -> None:
    slot_id = SlotId(Play(house).add_slot(Shape(capacity=5)))
    first, second = house.runner.run(_served_together(house, slot_id, holds))
    assert (type(first).__name__, type(second).__name__) == ("Booked", "KeyReused")
    (slot,) = house.truth["slots"].find()
    assert slot["remaining"] == 4
    assert [("until" in kept) for kept in slot["bookings"]] == [holds[0]]
    assert house.truth["answers"].count_documents({}) == 1


def test_many_sends_of_one_question_in_one_batch_have_one_answer_and_another_question_none(
    house: House,
) -> None:
    slot_id = SlotId(Play(house).add_slot(Shape(capacity=5)))
    holds = [True, True, False, True]
    first, same, other, last = house.runner.run(_served_together(house, slot_id, holds))
    assert type(first).__name__ == "Booked"
    assert first.booking == same.booking == last.booking
    assert type(other).__name__ == "KeyReused"
    assert house.truth["slots"].count_documents({"remaining": 4}) == 1
