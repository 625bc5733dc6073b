"""Users who try to book in a loop before a campaign opens."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import book_with_refusal, create_campaign, update_campaign
from tests.support.clients.client import Json, hours_from_now

USER_COUNT = 24


@dataclass(frozen=True)
class TimedResponse:
    """The times of a request and its response by one clock, and the response."""

    sent: datetime
    received: datetime
    outcome: Json

    @property
    def name(self) -> str:
        """Return the type of the outcome."""
        return str(self.outcome["__typename"])


async def request_until_open(user: BookingClient, slot_id: str) -> list[TimedResponse]:
    """Repeat a request in a loop, as a client does that wants to be first."""
    responses: list[TimedResponse] = []
    while not responses or responses[-1].name in ("NotYetOpen", "Locked"):
        sent = datetime.now(UTC)
        outcome = await book_with_refusal(user, slot_id, waitMs=0)
        responses.append(TimedResponse(sent, datetime.now(UTC), outcome))
    return responses


async def opening(
    deployment: Deployment, apps: Sequence[AppProcess]
) -> tuple[datetime, list[TimedResponse]]:
    """Run all requests around the opening of a campaign; return them with the opening time."""
    organizer = deployment.organizer(apps[0])
    campaign_id = await create_campaign(organizer, opensAt=hours_from_now(1))
    places = {"campaignId": campaign_id, "capacity": USER_COUNT}
    slot_ids = [await deployment.add_slot(apps[0], **places) for _ in range(2)]
    opens = datetime.now(UTC).replace(microsecond=500_000) + timedelta(seconds=3)
    await update_campaign(organizer, campaign_id, opensAt=opens.isoformat())
    users = [deployment.client(apps[n % len(apps)], n) for n in range(USER_COUNT)]
    rush = [request_until_open(user, slot_ids[n % 2]) for n, user in enumerate(users)]
    responses = [each for one in await asyncio.gather(*rush) for each in one]
    assert (
        sum(len(deployment.consistent_booking_ids(slot_id)) for slot_id in slot_ids) == USER_COUNT
    )
    return opens, responses


def too_early(opens: datetime, responses: Sequence[TimedResponse]) -> int:
    """Count bookings that were made or acknowledged before the opening."""
    booked = [each for each in responses if each.name == "Booked"]
    assert len(booked) == USER_COUNT
    made = [datetime.fromisoformat(each.outcome["booking"]["createdAt"]) for each in booked]
    return sum(at < opens or each.received < opens for at, each in zip(made, booked, strict=True))


def too_late(opens: datetime, responses: Sequence[TimedResponse]) -> int:
    """Count `NotYetOpen` refusals of requests that were sent after the opening."""
    return sum(each.sent >= opens and each.name == "NotYetOpen" for each in responses)
