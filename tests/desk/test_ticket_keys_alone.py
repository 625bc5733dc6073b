"""Keys of tickets at the desk, when the line is away or was lost."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.booking import Asking, Wish, book_for
from slotlock.desk.queueing import request_booking
from slotlock.domain.outcomes import Booked
from slotlock.domain.tickets import RequestLost, Ticket
from slotlock.stores.ids import new_slot_id
from slotlock.stores.queue import Queue
from slotlock.stores.redis import RedisLine, redis_client
from slotlock.stores.writes import Changes
from tests.domain.test_booking import slot
from tests.support.acts import MORNING
from tests.support.desks import House, open_house
from tests.support.processes import free_port
from tests.support.tickets import own_part


@pytest.fixture
def house(servers: Servers) -> Iterator[House]:
    """Desks whose Redis can be taken away."""
    with open_house(own_part(servers), "ticket_keys") as opened:
        yield opened


def test_served_at_once_for_want_of_a_line_the_same_key_gives_the_same_ticket(
    house: House,
) -> None:
    def ticking() -> datetime:
        house.clock.jump(timedelta(milliseconds=1))
        return house.clock.now

    async def sent_twice() -> tuple[object, object]:
        nowhere = RedisLine(redis_client(f"redis://127.0.0.1:{free_port()}"))
        desk = replace(house.desks[0], queue=Queue(nowhere), now=ticking)
        ada, slot_id = house.people[0], new_slot_id()
        made = slot(3, id=slot_id, start=MORNING.replace(year=2041))
        assert await desk.writes.commit(Changes((), new=(made,)))
        first = await request_booking(desk, ada, slot_id, ada.user_id, Wish(key="k"))
        again = await request_booking(desk, ada, slot_id, ada.user_id, Wish(key="k"))
        await nowhere.close()
        return first, again

    first, again = house.runner.run(sent_twice())
    assert isinstance(first, Ticket)
    assert first == again


def test_a_request_that_was_told_lost_is_granted_to_nobody_who_still_has_it(house: House) -> None:
    async def served_late() -> list[Any]:
        desk, organiser, ada = house.desks[0], house.people[-1], house.people[0]
        slot_id = new_slot_id()
        made = slot(3, id=slot_id, start=MORNING.replace(year=2041))
        assert await desk.writes.commit(Changes((), new=(made,)))
        slip = Wish(key="k").slip(organiser, "book", slot_id, ada.user_id)
        assert slip is not None
        await desk.answers.keep(slip.lost(MORNING))
        late = replace(slip, asked_at=MORNING)
        asking = Asking(organiser, slot_id, ada.user_id, hold=False, slip=late)
        granted = await book_for(desk, asking, 0.0)
        asked_again = await book_for(desk, replace(asking, slip=slip), 0.0)
        return [granted, asked_again]

    granted, asked_again = house.runner.run(served_late())
    assert isinstance(granted, RequestLost)
    assert isinstance(asked_again, Booked)
