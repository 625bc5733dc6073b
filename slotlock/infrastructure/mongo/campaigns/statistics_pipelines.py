"""The pipelines that count a campaign's documents."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.reports.campaign_reports import TimeWindow
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.expressions import (
    Pipeline,
    is_expired,
    unexpired_bookings,
    unexpired_deadlines,
)


def _match_published_slots(campaign_id: ObjectId) -> Document:
    return {"$match": {"campaign.id": campaign_id, "status": SlotStatus.PUBLISHED.value}}


def slot_statistics(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """Places, bookings, holds and turns of each published slot, by start."""
    counts = {
        "start": 1,
        "capacity": 1,
        "taken": {"$size": unexpired_bookings(now)},
        "held": {"$size": unexpired_deadlines(now)},
        "waitlist": {"$size": "$waitlist"},
    }
    return [
        _match_published_slots(campaign_id),
        {"$sort": {"start": 1, "_id": 1}},
        {"$project": counts},
    ]


def booking_statistics(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """How many people have a booking; bookings and people of each group."""
    # Most people have one list of groups however often they book: few rows are left to unfold.
    alike = {"user": "$bookings.user", "groups": "$bookings.groups"}
    theirs = {"user": "$_id.user", "group": "$_id.groups"}
    groups = [
        {"$unwind": "$_id.groups"},
        {"$group": {"_id": theirs, "bookings": {"$sum": "$bookings"}}},
        {"$group": {"_id": "$_id.group", "bookings": {"$sum": "$bookings"}, "booked": {"$sum": 1}}},
    ]
    users = [{"$group": {"_id": "$_id.user"}}, {"$count": "users"}]
    return [
        _match_published_slots(campaign_id),
        {"$project": {"bookings": unexpired_bookings(now)}},
        {"$unwind": "$bookings"},
        {"$group": {"_id": alike, "bookings": {"$sum": 1}}},
        {"$facet": {"groups": groups, "users": users}},
    ]


def waitlist_statistics(campaign_id: ObjectId) -> Pipeline:
    """How many turns in waiting lists are of people of each group."""
    return [
        _match_published_slots(campaign_id),
        {"$project": {"groups": "$waitlist.groups"}},
        {"$unwind": "$groups"},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "entries": {"$sum": 1}}},
    ]


def group_members(groups: Sequence[str], eligible_groups: Sequence[Sequence[str]]) -> Pipeline:
    """How many people carry each of these groups and may take part."""
    sets = [{"groups": {"$in": list(wanted)}} for wanted in eligible_groups or (groups,)]
    return [
        {"$match": {"$and": sets}},
        {"$project": {"groups": 1}},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "users": {"$sum": 1}}},
        {"$match": {"_id": {"$in": list(groups)}}},
    ]


def live_bookings_over_time(campaign_id: ObjectId, window: TimeWindow, now: datetime) -> Pipeline:
    """When the bookings that slots hold were made, and when those ended that count no more."""
    over = {"$cond": [is_expired("$bookings", now), "$bookings.heldUntil", None]}
    times = {
        "createdAt": {"$ifNull": [{"$first": "$bookings.history.at"}, "$bookings.at"]},
        "endedAt": {"$ifNull": ["$cancellation.at", over]},
    }
    return [
        {"$match": {"campaign.id": campaign_id}},
        {"$project": {"bookings": 1, "cancellation.at": 1}},
        {"$unwind": "$bookings"},
        {"$project": times},
        *_changes_per_interval(window),
    ]


def ended_bookings_over_time(slot_ids: Sequence[ObjectId], window: TimeWindow) -> Pipeline:
    """When the bookings that ended in these slots were made, and when they ended."""
    times = {"createdAt": {"$first": "$history.at"}, "endedAt": "$endedAt"}
    return [
        {"$match": {"slot": {"$in": slot_ids}}},
        {"$project": times},
        *_changes_per_interval(window),
    ]


def _changes_per_interval(window: TimeWindow) -> Pipeline:
    """How much was booked and given back in each interval; what came before is in -1."""
    length = window.interval.length // timedelta(milliseconds=1)
    number = {"$floor": {"$divide": [{"$subtract": ["$events.at", window.start]}, length]}}
    # A clock that is ahead must not hide what has happened already.
    within = {"$max": [-1, {"$min": [window.point_count - 1, number]}]}
    before = {"$lt": window.end} if not window.ends_now else {"$ne": None}
    events = [
        {"at": "$createdAt", "booked": 1, "givenBack": 0},
        {"at": "$endedAt", "booked": 0, "givenBack": 1},
    ]
    sums = {"booked": {"$sum": "$events.booked"}, "givenBack": {"$sum": "$events.givenBack"}}
    return [
        {"$project": {"events": events}},
        {"$unwind": "$events"},
        {"$match": {"events.at": before}},
        {"$group": {"_id": {"$toInt": within}, **sums}},
    ]
