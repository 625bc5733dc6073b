"""Computes the statistics of a campaign in MongoDB.

All parts are read as of one instant, so that they agree whatever is booked meanwhile. The cost
grows with the campaign's bookings. Therefore one computation runs at a time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.booking.booking import ATTENDANCE_AFTER, BookingAction, SlotId
from slotlock.domain.booking.slot import SlotStatus
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
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.expressions import (
    Pipeline,
    is_expired,
    unexpired_bookings,
    unexpired_deadlines,
)

# When a live booking was made: one that never changed has no history.
BOOKED_AT: Document = {"$ifNull": ["$$this.at", {"$first": "$$this.history.at"}]}
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
        return CampaignStatistics(campaign.terms, now, slots, groups, user_count, time_series)

    async def _load_slot_statistics(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[SlotStatistics, ...]:
        pipeline = slot_statistics(ObjectId(campaign.id), now)
        found = await self._slots.aggregate(pipeline, session=session)
        return tuple([_to_slot_statistics(document) async for document in found])

    async def _load_group_statistics(
        self, campaign: Campaign, now: datetime, session: AsyncClientSession
    ) -> tuple[int, tuple[GroupStatistics, ...]]:
        campaign_id = ObjectId(campaign.id)
        bookings = await self._slots.aggregate(
            booking_statistics(campaign_id, now), session=session
        )
        (found,) = await bookings.to_list()
        entries = await self._slots.aggregate(waitlist_statistics(campaign_id), session=session)
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
        pipeline = group_members(groups, terms.eligible_groups)
        found = await self._users.aggregate(pipeline, session=session)
        return {each["_id"]: each["users"] async for each in found}

    async def _load_time_series(
        self, campaign: Campaign, window: TimeWindow, now: datetime, session: AsyncClientSession
    ) -> tuple[TimeSeriesPoint, ...]:
        campaign_id = ObjectId(campaign.id)
        found = self._slots.find({"campaign.id": campaign_id}, {"_id": 1}, session=session)
        slot_ids = [document["_id"] async for document in found]
        live, ended = (
            live_bookings_over_time(campaign_id, window, now),
            ended_bookings_over_time(slot_ids, window),
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
        document["lastBooked"],
    )


def _match_published_slots(campaign_id: ObjectId) -> Document:
    return {"$match": {"campaign.id": campaign_id, "status": SlotStatus.PUBLISHED.value}}


def slot_statistics(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """Count bookings, holds and waitlist entries of each published slot, by start."""
    counts = {
        "start": 1,
        "capacity": 1,
        "taken": {"$size": unexpired_bookings(now)},
        "held": {"$size": unexpired_deadlines(now)},
        "waitlist": {"$size": "$waitlist"},
        "lastBooked": {"$max": {"$map": {"input": unexpired_bookings(now), "in": BOOKED_AT}}},
        "attendances": {
            "$map": {"input": "$bookings", "as": "booking", "in": _counting_attendance_actions()}
        },
    }
    checked_in = {"$in": [BookingAction.CHECKED_IN.value, "$$this"]}
    missed = {"$in": [BookingAction.NO_SHOW.value, "$$this"]}
    attendance_counts = {
        "checkedIn": _count("$attendances", checked_in),
        "noShows": _count("$attendances", {"$and": [missed, {"$not": checked_in}]}),
    }
    return [
        _match_published_slots(campaign_id),
        {"$sort": {"start": 1, "_id": 1}},
        {"$project": counts},
        {"$set": attendance_counts},
        {"$unset": "attendances"},
    ]


def _counting_attendance_actions() -> Document:
    """Return the actions that `Booking.attendance` follows from: the last one for each meeting.

    An action for all meetings replaces those before it.
    """
    recording = [each.value for each in ATTENDANCE_AFTER]
    recorded = {
        "$filter": {
            "input": {"$ifNull": ["$$booking.history", []]},
            "cond": {"$in": ["$$this.action", recording]},
        }
    }
    of_other_meetings = {
        "$filter": {
            "input": "$$value",
            "as": "before",
            "cond": {"$ne": ["$$before.meetingStart", "$$this.meetingStart"]},
        }
    }
    is_for_all = {"$lte": ["$$this.meetingStart", None]}
    counting = {
        "$reduce": {
            "input": recorded,
            "initialValue": [],
            "in": {"$concatArrays": [{"$cond": [is_for_all, [], of_other_meetings]}, ["$$this"]]},
        }
    }
    return {"$let": {"vars": {"counting": counting}, "in": "$$counting.action"}}


def _count(values: str, condition: Document) -> Document:
    return {"$size": {"$filter": {"input": values, "cond": condition}}}


def booking_statistics(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """Count the users with a booking, and the bookings and users of each group."""
    # Grouped by users with equal groups first, which leaves few documents to unwind.
    user_with_groups = {"user": "$bookings.user", "groups": "$bookings.groups"}
    user_in_group = {"user": "$_id.user", "group": "$_id.groups"}
    groups = [
        {"$unwind": "$_id.groups"},
        {"$group": {"_id": user_in_group, "bookings": {"$sum": "$bookings"}}},
        {"$group": {"_id": "$_id.group", "bookings": {"$sum": "$bookings"}, "booked": {"$sum": 1}}},
    ]
    users = [{"$group": {"_id": "$_id.user"}}, {"$count": "users"}]
    return [
        _match_published_slots(campaign_id),
        {"$project": {"bookings": unexpired_bookings(now)}},
        {"$unwind": "$bookings"},
        {"$group": {"_id": user_with_groups, "bookings": {"$sum": 1}}},
        {"$facet": {"groups": groups, "users": users}},
    ]


def waitlist_statistics(campaign_id: ObjectId) -> Pipeline:
    """Count the waitlist entries of each group."""
    return [
        _match_published_slots(campaign_id),
        {"$project": {"groups": "$waitlist.groups"}},
        {"$unwind": "$groups"},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "entries": {"$sum": 1}}},
    ]


def group_members(groups: Sequence[str], eligible_groups: Sequence[Sequence[str]]) -> Pipeline:
    """Count the eligible users in each of these groups."""
    conditions = [
        {"groups": {"$in": list(group_set)}} for group_set in eligible_groups or (groups,)
    ]
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"groups": 1}},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "users": {"$sum": 1}}},
        {"$match": {"_id": {"$in": list(groups)}}},
    ]


def live_bookings_over_time(campaign_id: ObjectId, window: TimeWindow, now: datetime) -> Pipeline:
    """Count when live bookings were created, and when those of them ended that no longer count."""
    expired_at = {"$cond": [is_expired("$bookings", now), "$bookings.heldUntil", None]}
    times = {
        "createdAt": {"$ifNull": [{"$first": "$bookings.history.at"}, "$bookings.at"]},
        "endedAt": {"$ifNull": ["$cancellation.at", expired_at]},
    }
    return [
        {"$match": {"campaign.id": campaign_id}},
        {"$project": {"bookings": 1, "cancellation.at": 1}},
        {"$unwind": "$bookings"},
        {"$project": times},
        *_changes_per_interval(window),
    ]


def ended_bookings_over_time(slot_ids: Sequence[ObjectId], window: TimeWindow) -> Pipeline:
    """Count when the ended bookings of these slots were created, and when they ended."""
    times = {"createdAt": {"$first": "$history.at"}, "endedAt": "$endedAt"}
    return [
        {"$match": {"slot": {"$in": slot_ids}}},
        {"$project": times},
        *_changes_per_interval(window),
    ]


def _changes_per_interval(window: TimeWindow) -> Pipeline:
    """Count bookings and their ends in each interval; -1 is the time before the window."""
    length = window.interval.length // timedelta(milliseconds=1)
    number = {"$floor": {"$divide": [{"$subtract": ["$events.at", window.start]}, length]}}
    # Times after the window count for its last interval: the clock of another process may be ahead.
    interval = {"$max": [-1, {"$min": [window.point_count - 1, number]}]}
    in_time = {"$lt": window.end} if not window.ends_now else {"$ne": None}
    events = [
        {"at": "$createdAt", "booked": 1, "givenBack": 0},
        {"at": "$endedAt", "booked": 0, "givenBack": 1},
    ]
    sums = {"booked": {"$sum": "$events.booked"}, "givenBack": {"$sum": "$events.givenBack"}}
    return [
        {"$project": {"events": events}},
        {"$unwind": "$events"},
        {"$match": {"events.at": in_time}},
        {"$group": {"_id": {"$toInt": interval}, **sums}},
    ]
