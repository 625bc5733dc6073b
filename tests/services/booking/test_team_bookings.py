"""A team may change between the permission to book for a teammate and the write of the booking."""

import asyncio

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.services import teams
from slotlock.services.booking.book import BookingOptions, book_slot
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.service_pair import ServicePair


@pytest.mark.parametrize(("leaving", "outcome"), [(2, "Booked"), (1, "NotTeammate")])
def test_a_team_that_changes_before_the_write_permits_the_booking_only_of_those_who_stay(
    pair: ServicePair, leaving: int, outcome: str
) -> None:
    slot_id = SlotId(ModelChecker(pair).add_slot(SlotShape()))
    services, (caller, teammate) = pair.services[0], pair.callers[:2]

    async def book_while_one_leaves() -> str:
        created = await teams.create(services, "Choir", caller.user_id)
        assert isinstance(created, TeamSaved)
        for other in pair.callers[1:3]:
            email = pair.emails[other.user_id]
            await teams.invite(services, created.team.id, email, caller.user_id)
            await teams.accept(services, created.team.id, other.user_id)
        reached = pair.slot_writer(0).pause_next_commit()
        options = BookingOptions()
        booking = asyncio.create_task(
            book_slot(services, caller, slot_id, teammate.user_id, options)
        )
        await reached.wait()
        await teams.leave(services, created.team.id, pair.callers[leaving].user_id)
        pair.slot_writer(0).resume_event.set()
        return type((await booking).outcome).__name__

    assert pair.runner.run(book_while_one_leaves()) == outcome
