"""The pipelines that count a campaign's documents."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from bson import ObjectId

from slotlock.domain.figures import Span
from slotlock.domain.slots import SlotStatus
from slotlock.stores.mongo import Document

Pipeline = list[Document]


def ran_out(booking: str, now: datetime) -> Document:
    """Whether a live booking is a hold whose time is over."""
    return {"$and": [{"$gt": [f"{booking}.until", None]}, {"$lte": [f"{booking}.until", now]}]}


def lasting(now: datetime) -> Document:
    """The live bookings of a slot without the holds that ran out."""
    return {"$filter": {"input": "$bookings", "cond": {"$not": ran_out("$$this", now)}}}


def _published(campaign_id: ObjectId) -> Document:
    return {"$match": {"campaign.id": campaign_id, "status": SlotStatus.PUBLISHED.value}}


def of_slots(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """Places, bookings, holds and turns of each published slot, by start."""
    held = {"$filter": {"input": "$bookings.until", "cond": {"$gt": ["$$this", now]}}}
    counts = {
        "start": 1,
        "capacity": 1,
        "taken": {"$size": lasting(now)},
        "held": {"$size": held},
        "waiting": {"$size": "$waiting"},
    }
    return [_published(campaign_id), {"$sort": {"start": 1, "_id": 1}}, {"$project": counts}]


def of_bookings(campaign_id: ObjectId, now: datetime) -> Pipeline:
    """How many people have a booking; bookings and people of each group."""
    # Most people have one list of groups however often they book: few rows are left to unfold.
    alike = {"user": "$bookings.user", "groups": "$bookings.groups"}
    theirs = {"user": "$_id.user", "group": "$_id.groups"}
    groups = [
        {"$unwind": "$_id.groups"},
        {"$group": {"_id": theirs, "bookings": {"$sum": "$bookings"}}},
        {"$group": {"_id": "$_id.group", "bookings": {"$sum": "$bookings"}, "booked": {"$sum": 1}}},
    ]
    people = [{"$group": {"_id": "$_id.user"}}, {"$count": "people"}]
    return [
        _published(campaign_id),
        {"$project": {"bookings": lasting(now)}},
        {"$unwind": "$bookings"},
        {"$group": {"_id": alike, "bookings": {"$sum": 1}}},
        {"$facet": {"groups": groups, "people": people}},
    ]


def of_lines(campaign_id: ObjectId) -> Pipeline:
    """How many turns in waiting lists are of people of each group."""
    return [
        _published(campaign_id),
        {"$project": {"groups": "$waiting.groups"}},
        {"$unwind": "$groups"},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "turns": {"$sum": 1}}},
    ]


def carriers(groups: Sequence[str], eligible: Sequence[Sequence[str]]) -> Pipeline:
    """How many people carry each of these groups and may take part."""
    sets = [{"groups": {"$in": list(wanted)}} for wanted in eligible or (groups,)]
    return [
        {"$match": {"$and": sets}},
        {"$project": {"groups": 1}},
        {"$unwind": "$groups"},
        {"$group": {"_id": "$groups", "people": {"$sum": 1}}},
        {"$match": {"_id": {"$in": list(groups)}}},
    ]


def live(campaign_id: ObjectId, span: Span, now: datetime) -> Pipeline:
    """When the bookings that slots hold were made, and when those ended that count no more."""
    over = {"$cond": [ran_out("$bookings", now), "$bookings.until", None]}
    times = {
        "made": {"$ifNull": [{"$first": "$bookings.log.at"}, "$bookings.at"]},
        "over": {"$ifNull": ["$calledOff.at", over]},
    }
    return [
        {"$match": {"campaign.id": campaign_id}},
        {"$project": {"bookings": 1, "calledOff.at": 1}},
        {"$unwind": "$bookings"},
        {"$project": times},
        *_in_intervals(span),
    ]


def ended(slot_ids: Sequence[ObjectId], span: Span) -> Pipeline:
    """When the bookings that ended in these slots were made, and when they ended."""
    times = {"made": {"$first": "$log.at"}, "over": "$endedAt"}
    return [{"$match": {"slot": {"$in": slot_ids}}}, {"$project": times}, *_in_intervals(span)]


def _in_intervals(span: Span) -> Pipeline:
    """How much was booked and given back in each interval; what came before is in -1."""
    length = span.interval.length // timedelta(milliseconds=1)
    number = {"$floor": {"$divide": [{"$subtract": ["$events.at", span.begin]}, length]}}
    # A clock that is ahead must not hide what has happened already.
    within = {"$max": [-1, {"$min": [span.points - 1, number]}]}
    before = {"$lt": span.end} if not span.open else {"$ne": None}
    events = [
        {"at": "$made", "booked": 1, "back": 0},
        {"at": "$over", "booked": 0, "back": 1},
    ]
    sums = {"booked": {"$sum": "$events.booked"}, "back": {"$sum": "$events.back"}}
    return [
        {"$project": {"events": events}},
        {"$unwind": "$events"},
        {"$match": {"events.at": before}},
        {"$group": {"_id": {"$toInt": within}, **sums}},
    ]
