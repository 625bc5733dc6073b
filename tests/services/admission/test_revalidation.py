"""Everything is decided anew when the turn comes: what changed in line is found behind it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.clients.campaigns import (
    create_campaign,
    set_groups,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import hours_from_now
from tests.support.queue.deployment import QueueDeployment, queue_deployment

__all__ = ["queue_deployment"]

NOON = {"startTime": "2040-05-07T12:00:00Z", "endTime": "2040-05-07T13:00:00Z"}
HALF_PAST = {"startTime": "2040-05-07T12:30:00Z", "endTime": "2040-05-07T13:30:00Z"}


class Desk:
    """Ada, for whom or by whom a place is asked, and what an organiser knows."""

    def __init__(self, deployment: QueueDeployment) -> None:
        app = deployment.app()
        self.scene = deployment
        self.organiser = deployment.organizer(app)
        self.ada, self.ben = deployment.queue_clients(app, 2)
        self.campaign = self.slot = ""

    async def open(self, **fields: Any) -> None:
        """A slot of a campaign with rules."""
        rules = {"eligibleGroups": [["5a"]], "forbidOverlap": True, "maxBookings": 2}
        self.campaign = await create_campaign(self.organiser, **rules)
        for each in (self.ada, self.ben):
            await set_groups(self.organiser, each, "5a")
        self.slot = await self.organiser.add_slot(campaignId=self.campaign, **NOON, **fields)


async def called_off(desk: Desk) -> None:
    await desk.organiser.cancel_slot(desk.slot)


async def closed(desk: Desk) -> None:
    await update_campaign(
        desk.organiser, desk.campaign, opensAt=hours_from_now(-2), closesAt=hours_from_now(-1)
    )


async def put_off(desk: Desk) -> None:
    await update_campaign(desk.organiser, desk.campaign, opensAt=hours_from_now(1))


async def unpublished(desk: Desk) -> None:
    await unpublish_campaign(desk.organiser, desk.campaign)


async def out_of_the_group(desk: Desk) -> None:
    await set_groups(desk.organiser, desk.ada, "5b")


async def clashing(desk: Desk) -> None:
    other = await desk.organiser.add_slot(campaignId=desk.campaign, **HALF_PAST)
    assert (await desk.ada.book_slot(other))["__typename"] == "Booked"


async def as_many_as_may_be(desk: Desk) -> None:
    await update_campaign(desk.organiser, desk.campaign, maxBookings=1)
    times = {"startTime": "2040-05-08T12:00:00Z", "endTime": "2040-05-08T13:00:00Z"}
    other = await desk.organiser.add_slot(campaignId=desk.campaign, **times)
    assert (await desk.ada.book_slot(other))["__typename"] == "Booked"


async def filled_up(desk: Desk) -> None:
    for each in (desk.ben, desk.scene.queue_client(desk.scene.app(), 2)):
        await set_groups(desk.organiser, each, "5a")
        assert (await each.book_slot(desk.slot))["__typename"] == "Booked"


async def made_smaller(desk: Desk) -> None:
    assert (await desk.ben.book_slot(desk.slot))["__typename"] == "Booked"
    assert (await desk.organiser.update_slot(desk.slot, capacity=1))["__typename"] == "Slot"


async def booked_by_themselves(desk: Desk) -> None:
    assert (await desk.ada.book_slot(desk.slot))["__typename"] == "Booked"


CHANGES: dict[str, tuple[Callable[[Desk], Awaitable[None]], str]] = {
    "the slot is called off": (called_off, "SLOT_CANCELLED"),
    "the campaign closes": (closed, "CLOSED"),
    "the opening is put off": (put_off, "NOT_YET_OPEN"),
    "the campaign is unpublished": (unpublished, "SLOT_NOT_FOUND"),
    "the person leaves the group": (out_of_the_group, "NOT_ELIGIBLE"),
    "something else clashes": (clashing, "TIME_CONFLICT"),
    "they have as many as may be": (as_many_as_may_be, "LIMIT_REACHED"),
    "the slot fills up": (filled_up, "SLOT_FULL"),
    "there are fewer places": (made_smaller, "SLOT_FULL"),
    "they have booked it already": (booked_by_themselves, "ALREADY_BOOKED"),
}


async def served_after(
    queue_deployment: QueueDeployment, why: str, off: str = ""
) -> tuple[str, Desk]:
    """What comes of a ticket when this happens before a worker without this guard serves it."""
    desk = Desk(queue_deployment)
    await desk.open(capacity=2)
    ticket = await desk.ada.enqueue(desk.slot)
    await CHANGES[why][0](desk)
    queue_deployment.worker(off)
    return await desk.ada.wait_for_outcome_code(ticket["id"]), desk


@pytest.mark.parametrize("why", CHANGES)
async def test_what_changed_while_somebody_stood_in_line_is_why_they_are_refused(
    queue_deployment: QueueDeployment, why: str
) -> None:
    code, desk = await served_after(queue_deployment, why)
    assert code == CHANGES[why][1]
    booked = {"filled_up": 2, "made_smaller": 1, "booked_by_themselves": 1}
    assert len(queue_deployment.consistent_booking_ids(desk.slot)) == booked.get(
        CHANGES[why][0].__name__, 0
    )


@pytest.mark.parametrize("why", CHANGES)
async def test_control_a_worker_that_trusts_what_was_found_before_books_them(
    queue_deployment: QueueDeployment, why: str
) -> None:
    code, _ = await served_after(queue_deployment, why, off="revalidation")
    assert code == "Booked"
