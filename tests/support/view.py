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

from tests.support.client import Json, in_hours
from tests.support.desk import Person, staffed
from tests.support.processes import AppProcess

CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) { createCampaign(input: $input) {
  __typename ... on Campaign { id } ... on Refusal { message } } }"""
SET_GROUPS = """mutation($input: SetGroupsInput!) { setGroups(input: $input) {
  __typename ... on User { groups } } }"""


AT_ONCE = 5


@dataclass(frozen=True)
class School:
    """A campaign of an organiser, its slots, its people and where all of it is kept."""

    campaign: str
    slots: Sequence[str]
    people: Sequence[Person]
    organiser: Person
    mongo_url: str

    def documents(self, name: str, **query: Any) -> list[Json]:
        """What a collection holds, read past the app."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            return list(client.get_default_database()[name].find(query))

    def own_slots(self) -> list[Json]:
        """The documents of the campaign's slots."""
        return self.documents("slots", **{"campaign.id": oid(self.campaign)})

    def let_some_holds_run_out(self) -> None:
        """Let the time of every second hold be over, and nobody be told to sweep it up."""
        with closing(MongoClient[Json](self.mongo_url, tz_aware=True)) as client:
            slots = client.get_default_database()["slots"]
            until = datetime.now(UTC)
            for number, (slot, booking) in enumerate(self.holds()):
                if number % 2 == 0:
                    last = len(booking["log"]) - 1
                    times = {"bookings.$.until": until, f"bookings.$.log.{last}.until": until}
                    slots.update_one(
                        {"_id": slot["_id"], "bookings.id": booking["id"]}, {"$set": times}
                    )

    def holds(self) -> list[tuple[Json, Json]]:
        """The holds in the campaign, each with its slot."""
        return [(s, b) for s in self.own_slots() for b in s["bookings"] if "until" in b]


def oid(gid: str) -> ObjectId:
    """The id that an id of the schema ends with."""
    return ObjectId(gid[-24:])


async def make_campaign(organiser: Person, **fields: Any) -> str:
    """The id of a campaign that is open, unless the fields say otherwise."""
    times = {"opensAt": in_hours(-2), "closesAt": in_hours(20)}
    asked = {"name": "Project week", "published": True, **times, **fields}
    made = await organiser.ask(CREATE_CAMPAIGN, input=asked)
    assert made["__typename"] == "Campaign", made
    return str(made["id"])


async def put_in(organiser: Person, person: Person, *groups: str) -> None:
    """Let a person carry these groups."""
    asked = {"userId": await person.id(), "groups": list(groups)}
    assert (await organiser.ask(SET_GROUPS, input=asked))["__typename"] == "User"


async def school(
    http: httpx.AsyncClient,
    apps: Sequence[AppProcess],
    name: str,
    people: int = 12,
    slots: int = 6,
    **fields: Any,
) -> School:
    """A campaign for two classes, of whose people some are in a choir as well."""
    members, organiser = await staffed(http, people, *apps)
    classes = [f"{name} a", f"{name} b"]
    for number, person in enumerate(members):
        choir = [f"{name} choir"] if number % 3 == 0 else []
        await put_in(organiser, person, classes[number % 2], *choir)
    campaign = await make_campaign(organiser, eligibleGroups=[classes], **fields)
    made = [
        await organiser.slot(capacity=1 + number % 3, campaignId=campaign, title=f"{name} {number}")
        for number in range(slots)
    ]
    url = apps[0].environment["SLOTLOCK_MONGO_URL"]
    return School(campaign, made, members, organiser, url)


async def happen(at: School, acts: int, seed: int) -> None:
    """About so many acts of all kinds, drawn from a seed, a few at once; some are refused."""
    chance = random.Random(seed)
    for _ in range(acts // AT_ONCE):
        draws = [(chance.choice(at.people), random.Random(chance.random())) for _ in range(AT_ONCE)]
        await asyncio.gather(*(_act(at, person, own) for person, own in draws))


async def _act(at: School, person: Person, chance: random.Random) -> None:
    slot = chance.choice(at.slots)
    seen = await person.mine(slot)
    mine = seen["myBooking"]
    match chance.randrange(6):
        case 0 if mine:
            await person.give_back(mine["id"])
        case 1 if mine:
            await person.move(mine["id"], chance.choice(at.slots))
        case 2 if mine:
            await person.confirm(mine["id"])
        case 3 if seen["myWaitlistEntry"]:
            await person.leave(slot)
        case 4:
            await at.organiser.wish(slot, userId=await person.id(), waitMs=5000)
        case 5:
            await person.wish(slot, hold=True, waitMs=5000)
        case _:
            if (await person.wish(slot, waitMs=5000))["__typename"] == "SlotFull":
                await person.join(slot)
