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
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Two desks on a database of their own, where nobody sweeps unasked."""
    with open_service_pair(servers, "banned_lines") as opened:
        yield opened


def ban(pair: ServicePair, person: Caller) -> None:
    """Ban somebody, and no more."""
    services, organizer = pair.services[0], pair.organizer.user_id
    (user,) = pair.runner.run(services.users.find_many([person.user_id])).values()
    assert pair.runner.run(services.bans.ban(user, organizer, None, pair.clock.now))


def waiting(pair: ServicePair) -> int:
    """How many wait anywhere."""
    return sum(len(slot["waitlist"]) for slot in pair.database["slots"].find())


def test_a_turn_that_came_after_the_ban_ends_with_the_next_sweep(pair: ServicePair) -> None:
    scene = ModelScenario(pair)
    slot_id = SlotId(scene.add_slot(SlotShape(capacity=1)))
    scene.book(1, slot_id)
    ban(pair, pair.callers[0])
    # The request was on its way: who it came from was looked at before.
    pair.runner.run(waitlist.join(pair.services[0], slot_id, pair.callers[0].user_id, 0.0))
    assert waiting(pair) == 1
    pair.runner.run(waitlist.remove_recently_banned(pair.services[1]))
    assert waiting(pair) == 0


def test_a_turn_in_a_slot_that_is_being_served_ends_when_that_is_over(pair: ServicePair) -> None:
    scene, desk = ModelScenario(pair), pair.services[0]
    slot_id = SlotId(scene.add_slot(SlotShape(capacity=1)))
    scene.book(1, slot_id)
    scene.perform("join", 0, slot_id)
    ban(pair, pair.callers[0])
    lease = pair.runner.run(pair.services[1].locks.acquire(slot_id))
    assert lease is not None
    pair.runner.run(waitlist.remove_recently_banned(desk))
    assert waiting(pair) == 1
    pair.runner.run(pair.services[1].locks.release(lease))
    pair.runner.run(waitlist.remove_recently_banned(desk))
    assert waiting(pair) == 0
