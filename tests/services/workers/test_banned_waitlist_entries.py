"""Somebody who is banned while a request of theirs is on its way waits for nothing all the same."""

from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import Caller
from slotlock.services.booking import waitlist
from tests.support.model.checker import SlotShape
from tests.support.model.scenario import ModelScenario
from tests.support.model.service_pair import ServicePair, open_service_pair


@pytest.fixture
def house(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Two desks on a database of their own, where nobody sweeps unasked."""
    with open_service_pair(servers, "banned_lines") as opened:
        yield opened


def ban(house: ServicePair, person: Caller) -> None:
    """Ban somebody, and no more."""
    users, organiser = house.services[0].users, house.organizer.user_id
    (user,) = house.runner.run(users.find_many([person.user_id])).values()
    assert house.runner.run(users.bans.ban(user, organiser, None, house.clock.now))


def waiting(house: ServicePair) -> int:
    """How many wait anywhere."""
    return sum(len(slot["waiting"]) for slot in house.database["slots"].find())


def test_a_turn_that_came_after_the_ban_ends_with_the_next_sweep(house: ServicePair) -> None:
    scene = ModelScenario(house)
    slot_id = SlotId(scene.add_slot(SlotShape(capacity=1)))
    scene.book(1, slot_id)
    ban(house, house.callers[0])
    # The request was on its way: who it came from was looked at before.
    house.runner.run(waitlist.join(house.services[0], slot_id, house.callers[0].user_id, 0.0))
    assert waiting(house) == 1
    house.runner.run(waitlist.remove_recently_banned(house.services[1]))
    assert waiting(house) == 0


def test_a_turn_in_a_slot_that_is_being_served_ends_when_that_is_over(house: ServicePair) -> None:
    scene, desk = ModelScenario(house), house.services[0]
    slot_id = SlotId(scene.add_slot(SlotShape(capacity=1)))
    scene.book(1, slot_id)
    scene.perform("join", 0, slot_id)
    ban(house, house.callers[0])
    lease = house.runner.run(house.services[1].locks.acquire(slot_id))
    assert lease is not None
    house.runner.run(waitlist.remove_recently_banned(desk))
    assert waiting(house) == 1
    house.runner.run(house.services[1].locks.release(lease))
    house.runner.run(waitlist.remove_recently_banned(desk))
    assert waiting(house) == 0
