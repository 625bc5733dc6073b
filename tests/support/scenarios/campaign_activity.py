"""A campaign with people of several classes in it, and a story that happens there."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from bson import ObjectId
from pymongo import MongoClient

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, set_groups
from tests.support.clients.client import Json

CONCURRENT_ACTIONS = 5


@dataclass(frozen=True)
class CampaignFixture:
    """A campaign of an organiser, its slots, its people and where all of it is kept."""

    campaign_id: str
    slot_ids: Sequence[str]
    members: Sequence[BookingClient]
    organizer: BookingClient
    mongo_url: str

    def documents(self, collection: str, **query: Any) -> list[Json]:
        """What a collection holds, read past the app."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            return list(client.get_default_database()[collection].find(query))

    def slot_documents(self) -> list[Json]:
        """The documents of the campaign's slots."""
        return self.documents("slots", **{"campaign.id": object_id(self.campaign_id)})

    def expire_every_second_hold(self) -> None:
        """Let the time of every second hold be over, and nobody be told to sweep it up."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            slots = client.get_default_database()["slots"]
            until = datetime.now(UTC)
            for number, (slot, booking) in enumerate(self.held_bookings()):
                if number % 2 == 0:
                    last = len(booking["history"]) - 1
                    times = {
                        "bookings.$.heldUntil": until,
                        f"bookings.$.history.{last}.heldUntil": until,
                    }
                    slots.update_one(
                        {"_id": slot["_id"], "bookings.id": booking["id"]}, {"$set": times}
                    )

    def held_bookings(self) -> list[tuple[Json, Json]]:
        """The holds in the campaign, each with its slot."""
        return [(s, b) for s in self.slot_documents() for b in s["bookings"] if "heldUntil" in b]


def object_id(global_id: str) -> ObjectId:
    """The id that an id of the schema ends with."""
    return ObjectId(global_id[-24:])


async def create_campaign_fixture(
    http: httpx.AsyncClient,
    apps: Sequence[AppProcess],
    name: str,
    member_count: int = 12,
    slot_count: int = 6,
    **fields: Any,
) -> CampaignFixture:
    """A campaign for two classes, of whose people some are in a choir as well."""
    members, organiser = await create_booking_clients(http, member_count, *apps)
    classes = [f"{name} a", f"{name} b"]
    for number, person in enumerate(members):
        choir = [f"{name} choir"] if number % 3 == 0 else []
        await set_groups(organiser, person, classes[number % 2], *choir)
    campaign = await create_campaign(organiser, eligibleGroups=[classes], **fields)
    made = [
        await organiser.add_slot(
            capacity=1 + number % 3, campaignId=campaign, title=f"{name} {number}"
        )
        for number in range(slot_count)
    ]
    url = apps[0].environment["SLOTLOCK_MONGO_URL"]
    return CampaignFixture(campaign, made, members, organiser, url)


async def run_random_actions(fixture: CampaignFixture, action_count: int, seed: int) -> None:
    """About so many acts of all kinds, drawn from a seed, a few at once; some are refused."""
    chance = random.Random(seed)
    for _ in range(action_count // CONCURRENT_ACTIONS):
        draws = [
            (chance.choice(fixture.members), random.Random(chance.random()))
            for _ in range(CONCURRENT_ACTIONS)
        ]
        await asyncio.gather(*(_run_random_action(fixture, person, own) for person, own in draws))


async def _run_random_action(
    fixture: CampaignFixture, client: BookingClient, rng: random.Random
) -> None:
    slot = rng.choice(fixture.slot_ids)
    seen = await client.fetch_slot(slot)
    mine = seen["myBooking"]
    match rng.randrange(6):
        case 0 if mine:
            await client.cancel_booking(mine["id"])
        case 1 if mine:
            await client.move(mine["id"], rng.choice(fixture.slot_ids))
        case 2 if mine:
            await client.confirm(mine["id"])
        case 3 if seen["myWaitlistEntry"]:
            await client.leave(slot)
        case 4:
            await fixture.organizer.book_slot(
                slot, userId=await client.fetch_user_id(), waitMs=5000
            )
        case 5:
            await client.book_slot(slot, hold=True, waitMs=5000)
        case _:
            if (await client.book_slot(slot, waitMs=5000))["__typename"] == "SlotFull":
                await client.join(slot)
