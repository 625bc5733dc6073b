"""The pipelines that read the entries of bookings and of turns in waiting lists as one list.

Each thing is unfolded into {id, user, slot, log: [{at, by, do, to, until?, over?}]}, in which a
turn in a waiting list comes first. The place in that list, `n`, stays the same whatever becomes of
the thing, so that a page never skips or repeats an entry whose booking ends meanwhile.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from slotlock.domain.audit.log import AuditAction, AuditFilter, AuditPosition
from slotlock.domain.booking.history import BookingAction, BookingStatus
from slotlock.infrastructure.mongo.campaigns.statistics_pipelines import Pipeline, is_expired
from slotlock.infrastructure.mongo.client import Document


def slot_entries(audit_filter: AuditFilter, now: datetime) -> Pipeline:
    """What happened to live bookings and to those who wait."""
    live = {"$map": {"input": "$bookings", "in": _live_booking(now)}}
    joined = [_joined_entry("$$this.at", "$$this.user")]
    turn = {"id": "$$this.id", "user": "$$this.user", "log": joined}
    line = {"$map": {"input": "$waiting", "in": turn}}
    return [
        {"$match": _slot_conditions(audit_filter, now)},
        {"$project": {"it": {"$concatArrays": [live, line]}}},
        {"$unwind": "$it"},
        {"$project": {"id": "$it.id", "user": "$it.user", "slot": "$_id", "log": "$it.log"}},
    ]


def _slot_conditions(audit_filter: AuditFilter, now: datetime) -> Document:
    conditions: list[Document] = []
    if audit_filter.slot_id is not None:
        conditions.append({"_id": ObjectId(audit_filter.slot_id)})
    if audit_filter.campaign_id is not None:
        conditions.append({"campaign.id": ObjectId(audit_filter.campaign_id)})
    if audit_filter.user_id is not None:
        user = ObjectId(audit_filter.user_id)
        conditions.append({"$or": [{"bookings.user": user}, {"waiting.user": user}]})
    if audit_filter.by is not None:
        by = ObjectId(audit_filter.by)
        names = ("bookings.user", "waiting.user", "bookings.log.by", "calledOff.by")
        conditions.append({"$or": [{name: by} for name in names]})
    if audit_filter.since is not None:
        # What happens to a slot changes it, but for a hold that runs out.
        since = {"changedAt": {"$gte": audit_filter.since}}
        conditions.append({"$or": [since, {"due": {"$lte": now}}]})
    return {"$and": conditions}


def _live_booking(now: datetime) -> Document:
    plain = [_entry("$$this.at", "$$this.user", BookingAction.BOOKED, BookingStatus.CONFIRMED)]
    off = _entry("$calledOff.at", "$calledOff.by", BookingAction.CANCELLED, BookingStatus.CANCELLED)
    expired = _entry("$$this.until", None, BookingAction.EXPIRED, BookingStatus.EXPIRED)
    end = {"$cond": [is_expired("$$this", now), [{**expired, "until": "$$this.until"}], []]}
    ended = {"$cond": [{"$gt": ["$calledOff.at", None]}, [off], end]}
    log = [_joined_entry_if_waited("$$this"), {"$ifNull": ["$$this.log", plain]}, ended]
    return {"id": "$$this.id", "user": "$$this.user", "log": {"$concatArrays": log}}


def ended_booking_entries(audit_filter: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """What happened to bookings that ended; `slot_ids` are those of the campaign, if any."""
    by = [{"log.by": ObjectId(audit_filter.by)}] if audit_filter.by else []
    # Who waited may be told of by their turn alone.
    by += [{"user": ObjectId(audit_filter.by)}] if audit_filter.by else []
    conditions = [*_ended_conditions(audit_filter, slot_ids), *([{"$or": by}] if by else [])]
    if audit_filter.since is not None:
        conditions.append({"endedAt": {"$gte": audit_filter.since}})
    log = {"$concatArrays": [_joined_entry_if_waited("$$ROOT"), "$log"]}
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "log": log}},
    ]


def ended_waitlist_entries(audit_filter: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """What happened to turns in waiting lists that ended without a place."""
    by = (
        [{"by": ObjectId(audit_filter.by)}, {"user": ObjectId(audit_filter.by)}]
        if audit_filter.by
        else []
    )
    conditions = [*_ended_conditions(audit_filter, slot_ids), *([{"$or": by}] if by else [])]
    left = _entry("$at", "$by", AuditAction.WAITLIST_LEFT, None)
    log = [_joined_entry("$since", "$user"), left]
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "log": log}},
    ]


def _ended_conditions(audit_filter: AuditFilter, slot_ids: Sequence[ObjectId]) -> list[Document]:
    conditions: list[Document] = []
    if audit_filter.slot_id is not None:
        conditions.append({"slot": ObjectId(audit_filter.slot_id)})
    if audit_filter.campaign_id is not None:
        conditions.append({"slot": {"$in": list(slot_ids)}})
    if audit_filter.user_id is not None:
        conditions.append({"user": ObjectId(audit_filter.user_id)})
    return conditions


def _entry(
    at: str, by: Any, action: BookingAction | AuditAction, status: BookingStatus | None
) -> Document:
    return {"at": at, "by": by, "do": action.value, "to": status and status.value}


def _joined_entry(at: str, user: str) -> Document:
    return _entry(at, user, AuditAction.WAITLIST_JOINED, None)


def _joined_entry_if_waited(booking: str) -> Document:
    joined = _joined_entry(f"{booking}.waited", f"{booking}.user")
    return {"$cond": [{"$gt": [f"{booking}.waited", None]}, [joined], []]}


def newest_entries(audit_filter: AuditFilter, after: AuditPosition | None, limit: int) -> Pipeline:
    """The newest entries of what was unfolded, each with the status before it."""
    before = {"$arrayElemAt": ["$tos", {"$subtract": ["$n", 1]}]}
    return [
        {"$set": {"tos": "$log.to"}},
        {"$unwind": {"path": "$log", "includeArrayIndex": "n"}},
        {"$match": {"$and": _entry_conditions(audit_filter, after)}},
        {"$sort": {"log.at": -1, "id": -1, "n": -1}},
        {"$limit": limit},
        {"$set": {"before": {"$cond": [{"$gt": ["$n", 0]}, before, None]}}},
        {"$unset": "tos"},
    ]


def _entry_conditions(audit_filter: AuditFilter, after: AuditPosition | None) -> list[Document]:
    conditions: list[Document] = [{"log.at": {"$ne": None}}]
    if audit_filter.user_id is not None:
        conditions.append({"user": ObjectId(audit_filter.user_id)})
    if audit_filter.by is not None:
        conditions.append({"log.by": ObjectId(audit_filter.by)})
    if audit_filter.system_only:
        conditions.append({"log.by": None})
    if audit_filter.actions is not None:
        conditions.append({"log.do": {"$in": sorted(audit_filter.actions)}})
    if audit_filter.since is not None:
        conditions.append({"log.at": {"$gte": audit_filter.since}})
    if audit_filter.before is not None:
        conditions.append({"log.at": {"$lt": audit_filter.before}})
    if after is not None:
        same = {"log.at": after.at, "id": ObjectId(after.id)}
        conditions.append(
            {
                "$or": [
                    {"log.at": {"$lt": after.at}},
                    {"log.at": after.at, "id": {"$lt": ObjectId(after.id)}},
                    {**same, "n": {"$lt": after.entry_index}},
                ]
            }
        )
    return conditions
