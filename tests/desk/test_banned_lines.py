"""Somebody who is banned while a request of theirs is on its way waits for nothing all the same."""

from collections.abc import Iterator

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk import waitlist
from slotlock.domain.bookings import SlotId
from slotlock.domain.people import Caller
from tests.support.desks import House, open_house
from tests.support.play import Shape
from tests.support.scenes import Scene


@pytest.fixture
def house(servers: Servers) -> Iterator[House]:
    """Two desks on a database of their own, where nobody sweeps unasked."""
    with open_house(servers, "banned_lines") as opened:
        yield opened


def ban(house: House, person: Caller) -> None:
    """Ban somebody, and no more."""
    users, organiser = house.desks[0].users, house.organiser.user_id
    (user,) = house.runner.run(users.by_ids([person.user_id])).values()
    assert house.runner.run(users.bans.ban(user, organiser, None, house.clock.now))


def waiting(house: House) -> int:
    """How many wait anywhere."""
    return sum(len(slot["waiting"]) for slot in house.truth["slots"].find())


def test_a_turn_that_came_after_the_ban_ends_with_the_next_sweep(house: House) -> None:
    scene = Scene(house)
    slot_id = SlotId(scene.add_slot(Shape(capacity=1)))
    scene.book(1, slot_id)
    ban(house, house.people[0])
    # The request was on its way: who it came from was looked at before.
    house.runner.run(waitlist.join(house.desks[0], slot_id, house.people[0].user_id, 0.0))
    assert waiting(house) == 1
    house.runner.run(waitlist.finish_leaving(house.desks[1]))
    assert waiting(house) == 0


def test_a_turn_in_a_slot_that_is_being_served_ends_when_that_is_over(house: House) -> None:
    scene, desk = Scene(house), house.desks[0]
    slot_id = SlotId(scene.add_slot(Shape(capacity=1)))
    scene.book(1, slot_id)
    scene.ask("join", 0, slot_id)
    ban(house, house.people[0])
    lease = house.runner.run(house.desks[1].locks.acquire(slot_id))
    assert lease is not None
    house.runner.run(waitlist.finish_leaving(desk))
    assert waiting(house) == 1
    house.runner.run(house.desks[1].locks.release(lease))
    house.runner.run(waitlist.finish_leaving(desk))
    assert waiting(house) == 0
