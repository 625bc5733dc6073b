"""A campaign with members of several groups, and random booking activity in it."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from pymongo import MongoClient

from tests.support.apps.deployment import object_id
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    CLOCK_LAG_S,
    BookingClient,
    create_booking_clients,
)
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json

CONCURRENT_ACTIONS = 5


@dataclass(frozen=True)
class CampaignFixture:
    """A campaign with its slots, members and organizer, and the database that stores it."""

    campaign_id: str
    slot_ids: Sequence[str]
    members: Sequence[BookingClient]
    organizer: BookingClient
    mongo_url: str

    def documents(self, collection: str, **query: Any) -> list[Json]:
        """Return the documents of a collection that match a query."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            return list(client.get_default_database()[collection].find(query))

    def slot_documents(self) -> list[Json]:
        """Return the documents of the campaign's slots."""
        return self.documents("slots", **{"campaign.id": object_id(self.campaign_id)})

    def expire_every_second_hold(self) -> None:
        """Move the end of every second hold into the past without a deadline for the sweeper."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            slots = client.get_default_database()["slots"]
            ended_at = datetime.now(UTC)
            for number, (slot, booking) in enumerate(self.held_bookings()):
                if number % 2 == 0:
                    last = len(booking["history"]) - 1
                    times = {
                        "bookings.$.heldUntil": ended_at,
                        f"bookings.$.history.{last}.heldUntil": ended_at,
                    }
                    slots.update_one(
                        {"_id": slot["_id"], "bookings.id": booking["id"]}, {"$set": times}
                    )
        time.sleep(CLOCK_LAG_S)

    def held_bookings(self) -> list[tuple[Json, Json]]:
        """Return the holds in the campaign, each with its slot."""
        return [(s, b) for s in self.slot_documents() for b in s["bookings"] if "heldUntil" in b]


async def create_campaign_fixture(
    http: httpx.AsyncClient,
    apps: Sequence[AppProcess],
    name: str,
    member_count: int = 12,
    slot_count: int = 6,
    **fields: Any,
) -> CampaignFixture:
    """Create a campaign for two classes, in which every third member is also in a choir."""
    members, organizer = create_booking_clients(http, member_count, *apps)
    classes = [f"{name} a", f"{name} b"]
    for number, member in enumerate(members):
        choir = [f"{name} choir"] if number % 3 == 0 else []
        await set_groups(organizer, member, classes[number % 2], *choir)
    campaign_id = await create_campaign(organizer, eligibleGroups=[classes], **fields)
    slot_ids = [
        await organizer.add_slot(
            capacity=1 + number % 3, campaignId=campaign_id, title=f"{name} {number}"
        )
        for number in range(slot_count)
    ]
    url = apps[0].environment["SLOTLOCK_MONGO_URL"]
    return CampaignFixture(campaign_id, slot_ids, members, organizer, url)


async def run_random_actions(fixture: CampaignFixture, action_count: int, seed: int) -> None:
    """Run random actions drawn from a seed, several at once. Some of them are refused."""
    rng = random.Random(seed)
    for _ in range(action_count // CONCURRENT_ACTIONS):
        draws = [
            (rng.choice(fixture.members), random.Random(rng.random()))
            for _ in range(CONCURRENT_ACTIONS)
        ]
        await asyncio.gather(
            *(_run_random_action(fixture, member, own_rng) for member, own_rng in draws)
        )


async def _run_random_action(
    fixture: CampaignFixture, client: BookingClient, rng: random.Random
) -> None:
    slot_id = rng.choice(fixture.slot_ids)
    slot = await client.fetch_slot(slot_id)
    booking = slot["myBooking"]
    match rng.randrange(6):
        case 0 if booking:
            await client.cancel_booking(booking["id"])
        case 1 if booking:
            await client.move(booking["id"], rng.choice(fixture.slot_ids))
        case 2 if booking:
            await client.confirm(booking["id"])
        case 3 if slot["myWaitlistEntry"]:
            await client.leave(slot_id)
        case 4:
            await fixture.organizer.book_slot(
                slot_id, userId=await client.fetch_user_id(), waitMs=5000
            )
        case 5:
            await client.book_slot(slot_id, hold=True, waitMs=5000)
        case _:
            if (await client.book_slot(slot_id, waitMs=5000))["__typename"] == "SlotFull":
                await client.join(slot_id)
