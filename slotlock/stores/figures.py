"""What the documents of a campaign come to, counted by MongoDB as of one snapshot.

All that one answer tells is read at one instant of the cluster, so that its parts agree whatever
is booked meanwhile. What it costs grows with the campaign's bookings, so it is one at a time.
"""

from collections.abc import Mapping
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.bookings import SlotId
from slotlock.domain.campaigns import Campaign
from slotlock.domain.figures import CampaignFigures, GroupFigures, Point, SlotFigures, Span, points
from slotlock.domain.terms import Terms
from slotlock.stores import figure_pipelines as pipelines
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import Database, Document

Happened = dict[int, tuple[int, int]]


class Figures:
    """Campaigns in figures."""

    def __init__(self, database: Database, reports: Gate, lists: Gate) -> None:
        self.gate = reports
        self.lists = lists
        self._client = database.client
        self._slots = database["slots"]
        self._ended = database["endedBookings"]
        self._users = database["users"]

    @gated
    async def of(self, campaign: Campaign, span: Span | None, now: datetime) -> CampaignFigures:
        """The figures of a campaign at `now`, with what happened over a span if one is asked."""
        return await self._in_turn(campaign, span, now)

    @listed
    async def _in_turn(
        self, campaign: Campaign, span: Span | None, now: datetime
    ) -> CampaignFigures:
        async with self._client.start_session(snapshot=True) as session:
            slots = await self._of_slots(campaign, now, session)
            people, groups = await self._of_groups(campaign, now, session)
            over_time = await self._over_time(campaign, span, now, session) if span else None
        return CampaignFigures(now, slots, groups, people, over_time)

    async def _of_slots(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[SlotFigures, ...]:
        pipeline = pipelines.of_slots(ObjectId(campaign.id), now)
        found = await self._slots.aggregate(pipeline, session=session)
        return tuple([_slot_figures(document) async for document in found])

    async def _of_groups(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[int, tuple[GroupFigures, ...]]:
        campaign_id = ObjectId(campaign.id)
        bookings = await self._slots.aggregate(
            pipelines.of_bookings(campaign_id, now), session=session
        )
        (found,) = await bookings.to_list()
        lines = await self._slots.aggregate(pipelines.of_lines(campaign_id), session=session)
        waiting = {each["_id"]: each["turns"] async for each in lines}
        booked = {each["_id"]: each for each in found["groups"]}
        invited = {group for groups in campaign.terms.eligible for group in groups}
        names = sorted(booked.keys() | waiting.keys() | invited)
        people = await self._carriers(names, campaign.terms, session)
        groups = tuple(
            GroupFigures(
                name,
                people.get(name, 0),
                booked.get(name, {}).get("bookings", 0),
                booked.get(name, {}).get("booked", 0),
                waiting.get(name, 0),
            )
            for name in names
        )
        return sum(each["people"] for each in found["people"]), groups

    async def _carriers(
        self, groups: list[str], terms: Terms, session: AsyncClientSession
    ) -> Mapping[str, int]:
        pipeline = pipelines.carriers(groups, terms.eligible)
        found = await self._users.aggregate(pipeline, session=session)
        return {each["_id"]: each["people"] async for each in found}

    async def _over_time(
        self, campaign: Campaign, span: Span, now: datetime, session: AsyncClientSession
    ) -> tuple[Point, ...]:
        campaign_id = ObjectId(campaign.id)
        found = self._slots.find({"campaign.id": campaign_id}, {"_id": 1}, session=session)
        slot_ids = [document["_id"] async for document in found]
        live, ended = pipelines.live(campaign_id, span, now), pipelines.ended(slot_ids, span)
        happened: Happened = {}
        for collection, pipeline in ((self._slots, live), (self._ended, ended)):
            async for each in await collection.aggregate(pipeline, session=session):
                booked, given_back = happened.get(each["_id"], (0, 0))
                booked, given_back = booked + each["booked"], given_back + each["back"]
                happened[each["_id"]] = booked, given_back
        return points(span, happened)


def _slot_figures(document: Document) -> SlotFigures:
    return SlotFigures(
        SlotId(str(document["_id"])),
        document["start"],
        document["capacity"],
        document["taken"],
        document["held"],
        document["waiting"],
    )
