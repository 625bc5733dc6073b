"""Pipelines that read the histories of bookings and of waitlist entries as one list.

Each is turned into {id, user, slot, history: [{at, by, action, status, heldUntil?,
overriddenLimits?, meetingStart?}]}, in which the entry for joining the waitlist comes first.
`entryIndex`, the position in that list, never changes. A page therefore never skips or repeats an
entry, even if the booking ends meanwhile.
"""

from collections.abc import Sequence, Set
from datetime import datetime

from bson import ObjectId

from slotlock.domain.audit.audit_log import (
    AUDIT_ACTIONS,
    AuditAction,
    AuditFilter,
    AuditPosition,
    NoteAction,
)
from slotlock.domain.booking.booking import BookingAction, BookingStatus
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.expressions import Pipeline, is_expired


def has_id(id_: str | None, *names: str) -> list[Document]:
    """Return the condition that one of these fields has an id, if there is one."""
    if id_ is None:
        return []
    conditions: list[Document] = [{name: ObjectId(id_)} for name in names]
    return conditions if len(conditions) == 1 else [{"$or": conditions}]


def by_and_time(audit_filter: AuditFilter, path: str = "") -> list[Document]:
    """Return the conditions of a filter for entries at this path: the times, and no user."""
    conditions: list[Document] = [{f"{path}by": None}] if audit_filter.system_only else []
    for operator, time in (("$gte", audit_filter.since), ("$lt", audit_filter.before)):
        if time is not None:
            conditions.append({f"{path}at": {operator: time}})
    return conditions


def slot_entries(audit_filter: AuditFilter, now: datetime) -> Pipeline:
    """Return the pipeline for the histories of live bookings and waitlist entries."""
    live = {"$map": {"input": "$bookings", "in": _live_booking(now)}}
    joined = [_joined_entry("$$this.since", "$$this")]
    entry = {"id": "$$this.id", "user": "$$this.user", "history": joined}
    waitlist = {"$map": {"input": "$waitlist", "in": entry}}
    return [
        {"$match": _slot_conditions(audit_filter, now)},
        {"$project": {"item": {"$concatArrays": [live, waitlist]}}},
        {"$unwind": "$item"},
        {
            "$project": {
                "id": "$item.id",
                "user": "$item.user",
                "slot": "$_id",
                "history": "$item.history",
            }
        },
    ]


def _slot_conditions(audit_filter: AuditFilter, now: datetime) -> Document:
    users = ("bookings.user", "waitlist.user")
    actors = ("bookings.history.by", "cancellation.by")
    organizers = ("bookings.waitlistedBy", "waitlist.waitlistedBy")
    conditions = [
        *has_id(audit_filter.slot_id, "_id"),
        *has_id(audit_filter.campaign_id, "campaign.id"),
        *has_id(audit_filter.user_id, *users),
        *has_id(audit_filter.by, *users, *actors, *organizers),
    ]
    if audit_filter.since is not None:
        # Everything that happens to a slot changes it, except for the expiry of a hold.
        changed = {"changedAt": {"$gte": audit_filter.since}}
        conditions.append({"$or": [changed, {"nextDeadline": {"$lte": now}}]})
    return {"$and": conditions}


def _live_booking(now: datetime) -> Document:
    plain = [_entry("$$this.at", "$$this.user", BookingAction.BOOKED, BookingStatus.CONFIRMED)]
    off = _entry(
        "$cancellation.at", "$cancellation.by", BookingAction.CANCELLED, BookingStatus.CANCELLED
    )
    expired = _entry("$$this.heldUntil", None, BookingAction.EXPIRED, BookingStatus.EXPIRED)
    end = {"$cond": [is_expired("$$this", now), [{**expired, "heldUntil": "$$this.heldUntil"}], []]}
    ended = {"$cond": [{"$gt": ["$cancellation.at", None]}, [off], end]}
    log = [_joined_entry_if_waited("$$this"), {"$ifNull": ["$$this.history", plain]}, ended]
    return {"id": "$$this.id", "user": "$$this.user", "history": {"$concatArrays": log}}


def ended_booking_entries(audit_filter: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """Return the pipeline for the histories of ended bookings.

    `slot_ids` are the slots of the campaign, if the filter has one.
    """
    conditions = _ended_conditions(audit_filter, slot_ids, "history.by")
    if audit_filter.since is not None:
        conditions.append({"endedAt": {"$gte": audit_filter.since}})
    log = {"$concatArrays": [_joined_entry_if_waited("$$ROOT"), "$history"]}
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "history": log}},
    ]


def ended_waitlist_entries(audit_filter: AuditFilter, slot_ids: Sequence[ObjectId]) -> Pipeline:
    """Return the pipeline for waitlist entries that ended without a booking."""
    conditions = _ended_conditions(audit_filter, slot_ids, "by")
    left = _entry("$at", "$by", NoteAction.WAITLIST_LEFT, None)
    log = [_joined_entry("$since", "$$ROOT"), left]
    return [
        {"$match": {"$and": conditions}},
        {"$project": {"id": "$_id", "user": 1, "slot": 1, "history": log}},
    ]


def _ended_conditions(
    audit_filter: AuditFilter, slot_ids: Sequence[ObjectId], actor: str
) -> list[Document]:
    conditions = [
        *has_id(audit_filter.slot_id, "slot"),
        *has_id(audit_filter.user_id, "user"),
        # The user or an organizer joined the waitlist, even if no entry of the booking is by them.
        *has_id(audit_filter.by, actor, "user", "waitlistedBy"),
    ]
    if audit_filter.campaign_id is not None:
        conditions.append({"slot": {"$in": list(slot_ids)}})
    return conditions


def _entry(
    at: str,
    by: str | Document | None,
    action: AuditAction,
    status: BookingStatus | None,
) -> Document:
    return {"at": at, "by": by, "action": action.value, "status": status and status.value}


def _joined_entry(at: str, item: str) -> Document:
    by = {"$ifNull": [f"{item}.waitlistedBy", f"{item}.user"]}
    return _entry(at, by, NoteAction.WAITLIST_JOINED, None)


def _joined_entry_if_waited(booking: str) -> Document:
    joined = _joined_entry(f"{booking}.waitedSince", booking)
    return {"$cond": [{"$gt": [f"{booking}.waitedSince", None]}, [joined], []]}


def newest_entries(audit_filter: AuditFilter, after: AuditPosition | None, limit: int) -> Pipeline:
    """Return the stages that select the newest entries, each with the status before it."""
    status_before = {"$arrayElemAt": ["$statuses", {"$subtract": ["$entryIndex", 1]}]}
    return [
        {"$set": {"statuses": "$history.status"}},
        {"$unwind": {"path": "$history", "includeArrayIndex": "entryIndex"}},
        {"$match": {"$and": _entry_conditions(audit_filter, after)}},
        {"$sort": {"history.at": -1, "id": -1, "entryIndex": -1}},
        {"$limit": limit},
        {"$set": {"before": {"$cond": [{"$gt": ["$entryIndex", 0]}, status_before, None]}}},
        {"$unset": "statuses"},
    ]


def _action_condition(actions: Set[AuditAction]) -> Document:
    """Return the condition for these actions; `OTHER` is all that this version does not know."""
    named: Document = {"history.action": {"$in": sorted(actions)}}
    if BookingAction.OTHER not in actions:
        return named
    return {"$or": [named, {"history.action": {"$nin": sorted(AUDIT_ACTIONS)}}]}


def _entry_conditions(audit_filter: AuditFilter, after: AuditPosition | None) -> list[Document]:
    conditions = [
        {"history.at": {"$ne": None}},
        *has_id(audit_filter.user_id, "user"),
        *has_id(audit_filter.by, "history.by"),
        *by_and_time(audit_filter, "history."),
    ]
    if audit_filter.actions is not None:
        conditions.append(_action_condition(audit_filter.actions))
    if audit_filter.for_others:
        conditions += [{"history.by": {"$ne": None}}, {"$expr": {"$ne": ["$history.by", "$user"]}}]
    if after is not None:
        same = {"history.at": after.at, "id": ObjectId(after.id)}
        conditions.append(
            {
                "$or": [
                    {"history.at": {"$lt": after.at}},
                    {"history.at": after.at, "id": {"$lt": ObjectId(after.id)}},
                    {**same, "entryIndex": {"$lt": after.entry_index}},
                ]
            }
        )
    return conditions
