"""Computes the statistics of a campaign in MongoDB.

All parts are read as of one instant, so that they agree whatever is booked meanwhile. The cost
grows with the campaign's bookings. Therefore one computation runs at a time.
"""

from collections.abc import Mapping
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.reports.campaign_reports import (
    CampaignStatistics,
    GroupStatistics,
    SlotStatistics,
    TimeSeriesPoint,
    TimeWindow,
    to_time_series,
)
from slotlock.infrastructure.mongo.campaigns import statistics_pipelines
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited

ChangesPerInterval = dict[int, tuple[int, int]]


class CampaignStatisticsQueries:
    """Computes the statistics of a campaign from a snapshot."""

    def __init__(self, database: Database, limiter: ConcurrencyLimiter) -> None:
        self.limiter = limiter
        self._client = database.client
        self._slots = database["slots"]
        self._ended_bookings = database["ended_bookings"]
        self._users = database["users"]

    @limited
    async def load(
        self, campaign: Campaign, window: TimeWindow | None, now: datetime
    ) -> CampaignStatistics:
        """Return the statistics at `now`, with a time series if a window is given."""
        async with self._client.start_session(snapshot=True) as session:
            slots = await self._load_slot_statistics(campaign, now, session)
            user_count, groups = await self._load_group_statistics(campaign, now, session)
            time_series = (
                await self._load_time_series(campaign, window, now, session) if window else None
            )
        return CampaignStatistics(now, slots, groups, user_count, time_series)

    async def _load_slot_statistics(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[SlotStatistics, ...]:
        pipeline = statistics_pipelines.slot_statistics(ObjectId(campaign.id), now)
        found = await self._slots.aggregate(pipeline, session=session)
        return tuple([_to_slot_statistics(document) async for document in found])

    async def _load_group_statistics(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[int, tuple[GroupStatistics, ...]]:
        campaign_id = ObjectId(campaign.id)
        bookings = await self._slots.aggregate(
            statistics_pipelines.booking_statistics(campaign_id, now), session=session
        )
        (found,) = await bookings.to_list()
        entries = await self._slots.aggregate(
            statistics_pipelines.waitlist_statistics(campaign_id), session=session
        )
        waiting_counts = {each["_id"]: each["entries"] async for each in entries}
        booked = {each["_id"]: each for each in found["groups"]}
        eligible = {group for groups in campaign.terms.eligible_groups for group in groups}
        names = sorted(booked.keys() | waiting_counts.keys() | eligible)
        member_counts = await self._count_group_members(names, campaign.terms, session)
        groups = tuple(
            GroupStatistics(
                name,
                member_counts.get(name, 0),
                booked.get(name, {}).get("bookings", 0),
                booked.get(name, {}).get("booked", 0),
                waiting_counts.get(name, 0),
            )
            for name in names
        )
        return sum(each["users"] for each in found["users"]), groups

    async def _count_group_members(
        self, groups: list[str], terms: CampaignTerms, session: AsyncClientSession
    ) -> Mapping[str, int]:
        pipeline = statistics_pipelines.group_members(groups, terms.eligible_groups)
        found = await self._users.aggregate(pipeline, session=session)
        return {each["_id"]: each["users"] async for each in found}

    async def _load_time_series(
        self, campaign: Campaign, window: TimeWindow, now: datetime, session: AsyncClientSession
    ) -> tuple[TimeSeriesPoint, ...]:
        campaign_id = ObjectId(campaign.id)
        found = self._slots.find({"campaign.id": campaign_id}, {"_id": 1}, session=session)
        slot_ids = [document["_id"] async for document in found]
        live, ended = (
            statistics_pipelines.live_bookings_over_time(campaign_id, window, now),
            statistics_pipelines.ended_bookings_over_time(slot_ids, window),
        )
        changes: ChangesPerInterval = {}
        for collection, pipeline in ((self._slots, live), (self._ended_bookings, ended)):
            async for each in await collection.aggregate(pipeline, session=session):
                booked, given_back = changes.get(each["_id"], (0, 0))
                booked, given_back = booked + each["booked"], given_back + each["givenBack"]
                changes[each["_id"]] = booked, given_back
        return to_time_series(window, changes)


def _to_slot_statistics(document: Document) -> SlotStatistics:
    return SlotStatistics(
        SlotId(str(document["_id"])),
        document["start"],
        document["capacity"],
        document["taken"],
        document["held"],
        document["waitlist"],
        document["checkedIn"],
        document["noShows"],
    )
