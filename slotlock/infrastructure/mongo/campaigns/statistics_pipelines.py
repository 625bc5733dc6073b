"""Aggregation pipelines for the statistics of a campaign."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from slotlock.domain.booking.booking import ATTENDANCE_AFTER, BookingAction
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
    """Count bookings, holds and waitlist entries of each published slot, by start."""
    counts = {
        "start": 1,
        "capacity": 1,
        "taken": {"$size": unexpired_bookings(now)},
        "held": {"$size": unexpired_deadlines(now)},
        "waitlist": {"$size": "$waitlist"},
        "checkedIn": _count_by_attendance(BookingAction.CHECKED_IN),
        "noShows": _count_by_attendance(BookingAction.NO_SHOW),
    }
    return [
        _match_published_slots(campaign_id),
        {"$sort": {"start": 1, "_id": 1}},
        {"$project": counts},
    ]


def _count_by_attendance(action: BookingAction) -> Document:
    """Count the live bookings whose attendance this action recorded last."""
    recording = [each.value for each in ATTENDANCE_AFTER]
    recorded = {
        "$filter": {
            "input": {"$ifNull": ["$$booking.history.action", []]},
            "as": "action",
            "cond": {"$in": ["$$action", recording]},
        }
    }
    counted = {"$eq": [{"$last": recorded}, action.value]}
    return {"$size": {"$filter": {"input": "$bookings", "as": "booking", "cond": counted}}}


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
