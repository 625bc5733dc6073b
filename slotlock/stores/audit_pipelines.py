"""The pipelines that read the entries of bookings and of turns in waiting lists as one list.

Each thing is unfolded into {id, user, slot, log: [{at, by, do, to, until?, over?}]}, in which a
turn in a waiting list comes first. The place in that list, `n`, stays the same whatever becomes of
the thing, so that a page never skips or repeats an entry whose booking ends meanwhile.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from slotlock.domain.audit import AuditFilter, AuditPosition, Happening
from slotlock.domain.record import BookingStatus, Deed
from slotlock.stores.figure_pipelines import Pipeline, ran_out
from slotlock.stores.mongo import Document


def of_slots(wanted: AuditFilter, now: datetime) -> Pipeline:
    """What happened to live bookings and to those who wait."""
    live = {"$map": {"input": "$bookings", "in": _live(now)}}
    joined = [_joined("$$this.at", "$$this.user")]
    turn = {"id": "$$this.id", "user": "$$this.user", "log": joined}
    line = {"$map": {"input": "$waiting", "in": turn}}
    return [
        {"$match": _slots_of(wanted, now)},
        {"$project": {"it": {"$concatArrays": [live, line]}}},
        {"$unwind": "$it"},
        {"$project": {"id": "$it.id", "user": "$it.user", "slot": "$_id", "log": "$it.log"}},
    ]


def _slots_of(wanted: AuditFilter, now: datetime) -> Document:
    conditions: list[Document] = []
    if wanted.slot_id is not None:
        conditions.append({"_id": ObjectId(wanted.slot_id)})
    if wanted.campaign_id is not None:
        conditions.append({"campaign.id": ObjectId(wanted.campaign_id)})
    if wanted.user_id is not None:
        user = ObjectId(wanted.user_id)
        conditions.append({"$or": [{"bookings.user": user}, {"waiting.user": user}]})
    if wanted.by is not None:
        by = ObjectId(wanted.by)
        names = ("bookings.user", "waiting.user", "bookings.log.by", "calledOff.by")
        conditions.append({"$or": [{name: by} for name in names]})
    if wanted.since is not None:
        # What happens to a slot changes it, but for a hold that runs out.
        since = {"changedAt": {"$gte": wanted.since}}
        conditions.append({"$or": [since, {"due": {"$lte": now}}]})
    return {"$and": conditions}


def _live(now: datetime) -> Document:
    plain = [_entry("$$this.at", "$$this.user", Deed.BOOKED, BookingStatus.CONFIRMED)]
    off = _entry("$calledOff.at", "$calledOff.by", Deed.CANCELLED, BookingStatus.CANCELLED)
    expired = _entry("$$this.until", None, Deed.EXPIRED, BookingStatus.EXPIRED)
    end = {"$cond": [ran_out("$$this", now), [{**expired, "until": "$$this.until"}], []]}
    ended = {"$cond": [{"$gt": ["$calledOff.at", None]}, [off], end]}
    log = [_waited("$$this"), {"$ifNull": ["$$this.log", plain]}, ended]
    return {"id": "$$this.id", "user": "$$this.user", "log": {"$concatArrays": log}}


def of_ended(wanted: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """What happened to bookings that ended; `slot_ids` are those of the campaign, if any."""
    by = [{"log.by": ObjectId(wanted.by)}] if wanted.by else []
    # Who waited may be told of by their turn alone.
    by += [{"user": ObjectId(wanted.by)}] if wanted.by else []
    conditions = [*_whose(wanted, slot_ids), *([{"$or": by}] if by else [])]
    if wanted.since is not None:
        conditions.append({"endedAt": {"$gte": wanted.since}})
    log = {"$concatArrays": [_waited("$$ROOT"), "$log"]}
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "log": log}},
    ]


def of_turns(wanted: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """What happened to turns in waiting lists that ended without a place."""
    by = [{"by": ObjectId(wanted.by)}, {"user": ObjectId(wanted.by)}] if wanted.by else []
    conditions = [*_whose(wanted, slot_ids), *([{"$or": by}] if by else [])]
    left = _entry("$at", "$by", Happening.WAITLIST_LEFT, None)
    log = [_joined("$since", "$user"), left]
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "log": log}},
    ]


def _whose(wanted: AuditFilter, slot_ids: Sequence[ObjectId]) -> list[Document]:
    conditions: list[Document] = []
    if wanted.slot_id is not None:
        conditions.append({"slot": ObjectId(wanted.slot_id)})
    if wanted.campaign_id is not None:
        conditions.append({"slot": {"$in": list(slot_ids)}})
    if wanted.user_id is not None:
        conditions.append({"user": ObjectId(wanted.user_id)})
    return conditions


def _entry(at: str, by: Any, deed: Deed | Happening, to: BookingStatus | None) -> Document:
    return {"at": at, "by": by, "do": deed.value, "to": to and to.value}


def _joined(at: str, user: str) -> Document:
    return _entry(at, user, Happening.WAITLIST_JOINED, None)


def _waited(booking: str) -> Document:
    joined = _joined(f"{booking}.waited", f"{booking}.user")
    return {"$cond": [{"$gt": [f"{booking}.waited", None]}, [joined], []]}


def newest(wanted: AuditFilter, after: AuditPosition | None, most: int) -> Pipeline:
    """The newest entries of what was unfolded, each with the status before it."""
    before = {"$arrayElemAt": ["$tos", {"$subtract": ["$n", 1]}]}
    return [
        {"$set": {"tos": "$log.to"}},
        {"$unwind": {"path": "$log", "includeArrayIndex": "n"}},
        {"$match": {"$and": _conditions(wanted, after)}},
        {"$sort": {"log.at": -1, "id": -1, "n": -1}},
        {"$limit": most},
        {"$set": {"before": {"$cond": [{"$gt": ["$n", 0]}, before, None]}}},
        {"$unset": "tos"},
    ]


def _conditions(wanted: AuditFilter, after: AuditPosition | None) -> list[Document]:
    conditions: list[Document] = [{"log.at": {"$ne": None}}]
    if wanted.user_id is not None:
        conditions.append({"user": ObjectId(wanted.user_id)})
    if wanted.by is not None:
        conditions.append({"log.by": ObjectId(wanted.by)})
    if wanted.by_nobody:
        conditions.append({"log.by": None})
    if wanted.what is not None:
        conditions.append({"log.do": {"$in": sorted(wanted.what)}})
    if wanted.since is not None:
        conditions.append({"log.at": {"$gte": wanted.since}})
    if wanted.before is not None:
        conditions.append({"log.at": {"$lt": wanted.before}})
    if after is not None:
        same = {"log.at": after.at, "id": ObjectId(after.id)}
        conditions.append(
            {
                "$or": [
                    {"log.at": {"$lt": after.at}},
                    {"log.at": after.at, "id": {"$lt": ObjectId(after.id)}},
                    {**same, "n": {"$lt": after.number}},
                ]
            }
        )
    return conditions
