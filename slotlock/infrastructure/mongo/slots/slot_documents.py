"""The shape of a slot's document; `slot_document_updates` changes it.

    {_id, title, start, end, timeZone, location, kind, status, capacity, remaining, version,
     changedAt, holdMinutes?, cancelCutoffMinutes?, waitlistCapacity?, waitlistOfferMinutes?,
     choiceGroup?, meetingUrl?, description?, searchWords: [str], titleKey, spans: [int],
     cancellation?: {at, by}, campaign?: terms, groupLimits?, meetings?: [{start, end}],
     resource?: str | [str], admission?, revision?, revisedAt?, series?, nextDeadline?,
     holdCooldownMinutes?, reminderMinutes?, onlyForGroups?: [str], number?,
     endedHolds?: [{user, at}], schemaVersion, bookings: [booking],
     waitlist: [{id, user, since, groups?, waitlistedBy?}]}

A fact with a default is stored where it has another value.
`SLOT_FIELDS` of the domain has the stored names of the facts about a slot. The names of its state
(`version`, `changedAt`, `remaining`, `nextDeadline`, `bookings`, `waitlist`) and what only queries
read (`searchWords`, `titleKey`, `spans`) stand literally in the queries and updates of this package
and of `campaigns`, `users` and `audit`. These three follow from the facts, and the mark before the
words tells their age.

The slot with the lowest id of a series has `seriesVersion` once dates were added to the series: how
often that happened.

`bookings` contains the live bookings in the order they were made, and `waitlist` the entries in the
order they are served. A booking or entry that ends moves to a document of its own in the same
transaction (see booking_documents). `nextDeadline` is not later than the end of the next hold, and
than the start of a slot with a waiting list.
A slot with a cooldown has `endedHolds`: when the last unconfirmed hold of each user ended.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from bson import ObjectId

from slotlock.domain.booking.booking import SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.slot import (
    SLOT_FACTS,
    SLOT_FIELDS,
    SeriesId,
    Slot,
    SlotCancellation,
    SlotKind,
    SlotSettings,
    SlotStatus,
)
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.document_parts import (
    SCHEMA_VERSION_FIELD,
    group_limits_to_documents,
    terms_to_document,
    to_group_limits,
    to_terms,
    with_schema_version,
)
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.indexes.time_spans import spans_of
from slotlock.infrastructure.mongo.search_words import FOLDING_INDEX, to_stored_words
from slotlock.infrastructure.mongo.slots.booking_documents import (
    to_booking,
    to_waitlisted_by,
)
from slotlock.infrastructure.stored_enums import UNKNOWN_MEMBERS, reader_of

# Fields by the names of their attributes.
STORED_NAMES = {field.name: field.stored_name for field in SLOT_FIELDS}
_STATE_FIELDS = ("version", "changedAt", "remaining", "endedHolds", SCHEMA_VERSION_FIELD)
LOADED_FIELDS = (*STORED_NAMES.values(), *_STATE_FIELDS)
PARTIAL_DEADLINE = {"partialFilterExpression": {"nextDeadline": {"$exists": True}}}
# Not `$type`: MongoDB would not recognize that a query for one choice group is for a string.
PARTIAL_CHOICE_GROUP = {"partialFilterExpression": {"choiceGroup": {"$gt": ""}}}
PARTIAL_RESOURCE = {"partialFilterExpression": {"resource": {"$gt": ""}}}
PARTIAL_CAMPAIGN = {"partialFilterExpression": {"campaign.id": {"$exists": True}}}
PARTIAL_SERIES = {"partialFilterExpression": {"series": {"$exists": True}}}
# A slot without a waitlist has no entry in the index; `sparse` would give it one by its start.
PARTIAL_WAITLIST = {"partialFilterExpression": {"waitlist.user": {"$exists": True}}}
WAITING_USER_INDEX = "waiting_user"
# A plain booking has no history, and therefore no entry in this index.
PARTIAL_HISTORY = {"partialFilterExpression": {"bookings.history.by": {"$exists": True}}}
HAS_REMINDER = {"$or": [{"reminderMinutes": {"$gt": 0}}, {"campaign.reminderMinutes": {"$gt": 0}}]}
# Only the worker that reminds looks for these, once a minute.
REMINDER_INDEX = "reminder"
PARTIAL_REMINDER = {"partialFilterExpression": HAS_REMINDER}
PARTIAL_CANCELLATION = {"partialFilterExpression": {"cancellation.by": {"$exists": True}}}
# Few users are put on a waiting list by an organizer.
PARTIAL_WAITLISTED_BY = {"partialFilterExpression": {"waitlist.waitlistedBy": {"$exists": True}}}
PARTIAL_PROMOTED = {"partialFilterExpression": {"bookings.waitlistedBy": {"$exists": True}}}
SLOT_INDEXES = indexes_of(
    "slots",
    {
        "list": ([("status", 1), ("start", 1), ("_id", 1)], {}),
        "in_progress": ([("status", 1), ("spans", 1), ("start", 1), ("_id", 1), ("end", 1)], {}),
        "title": ([("status", 1), ("titleKey", 1), ("_id", 1), ("end", 1)], {}),
        "kind": ([("status", 1), ("kind", 1), ("start", 1), ("_id", 1)], {}),
        "search_words": ([("status", 1), ("searchWords", 1)], {}),
        "folding": FOLDING_INDEX,
        "booked_user": ([("bookings.user", 1), ("start", 1), ("_id", 1)], {}),
        WAITING_USER_INDEX: ([("waitlist.user", 1), ("start", 1), ("_id", 1)], PARTIAL_WAITLIST),
        "end": ([("end", 1), ("_id", 1)], {}),
        "next_deadline": ([("nextDeadline", 1)], PARTIAL_DEADLINE),
        "choice_group": ([("choiceGroup", 1), ("bookings.user", 1)], PARTIAL_CHOICE_GROUP),
        "campaign": ([("campaign.id", 1), ("start", 1), ("_id", 1)], PARTIAL_CAMPAIGN),
        "choice_group_start": (
            [("choiceGroup", 1), ("start", 1), ("_id", 1)],
            PARTIAL_CHOICE_GROUP,
        ),
        "resource_start": ([("resource", 1), ("start", 1), ("_id", 1)], PARTIAL_RESOURCE),
        "series": ([("series", 1), ("start", 1), ("_id", 1)], PARTIAL_SERIES),
        "history_by": ([("bookings.history.by", 1)], PARTIAL_HISTORY),
        "waitlisted_by": ([("waitlist.waitlistedBy", 1)], PARTIAL_WAITLISTED_BY),
        "promoted_waitlisted_by": ([("bookings.waitlistedBy", 1)], PARTIAL_PROMOTED),
        "cancelled_by": ([("cancellation.by", 1)], PARTIAL_CANCELLATION),
        REMINDER_INDEX: ([("start", 1)], PARTIAL_REMINDER),
    },
)


def to_slot_state(document: Document) -> SlotState:
    """Return the state of the slot that a document describes, as far as it was loaded."""
    slot_id = SlotId(str(document["_id"]))
    bookings, groups = document["bookings"], document.get("groupCounts")
    loaded, ended_holds = document["waitlist"], document.get("endedHolds")
    entries = loaded
    if own := document.get("ownWaitlistEntries"):
        loaded_ids = {entry["id"] for entry in loaded}
        entries = [*loaded, *(each for each in own if each["id"] not in loaded_ids)]
    return SlotState(
        _to_slot(slot_id, document),
        document["version"],
        document["changedAt"],
        document["capacity"] - document["remaining"],
        tuple([to_booking(slot_id, each) for each in bookings]) if bookings else (),
        tuple([to_waitlist_entry(slot_id, each) for each in entries]) if entries else (),
        len(loaded),
        document.get("waitlistLength", len(loaded)),
        {each["group"]: each["count"] for each in groups} if groups else {},
        document.get("nextDeadline"),
        ended_holds=_to_ended_holds(ended_holds) if ended_holds else {},
    )


_to_kind, _to_status = reader_of(SlotKind.OTHER), reader_of(SlotStatus.DRAFT)
_to_admission = reader_of(SlotAdmission.QUEUE_ONLY)


def _to_ended_holds(subdocuments: Iterable[Document]) -> dict[UserId, datetime]:
    return {UserId(str(each["user"])): each["at"] for each in subdocuments}


def _to_slot(slot_id: SlotId, document: Document) -> Slot:
    # Every decision converts the facts, and a loop over `SLOT_FIELDS` takes twice as long.
    find = document.get
    cancellation, terms = find("cancellation"), find("campaign")
    group_limits, meetings, series = find("groupLimits"), find("meetings"), find("series")
    admission, resource = find("admission", SlotAdmission.ANY), find("resource")
    slot = Slot(
        document["title"],
        document["timeZone"],
        document["capacity"],
        document["location"],
        _to_kind(document["kind"]),
        find("holdMinutes", 5),
        find("cancelCutoffMinutes", 0),
        find("waitlistCapacity", 100),
        find("waitlistOfferMinutes"),
        find("choiceGroup"),
        _to_admission(admission),
        id=slot_id,
        start=document["start"],
        end=document["end"],
        status=_to_status(document["status"]),
        cancellation=_to_cancellation(cancellation) if cancellation else None,
        terms=to_terms(terms) if terms else None,
        group_limits=to_group_limits(group_limits) if group_limits else (),
        meetings=_to_meetings(meetings) if meetings else (),
        resource=resource[0] if type(resource) is list else resource,
        series_id=_to_series_id(series) if series else None,
        revision=find("revision", 0),
        revised_at=find("revisedAt"),
        several_resources=tuple(resource) if type(resource) is list else (),
    )
    for name, stored_name, convert in _LATER_FACTS:
        if stored_name in document:
            stored = document[stored_name]
            setattr(slot, name, stored if convert is None else convert(stored))
    return slot


def to_waitlist_entry(slot_id: SlotId, subdocument: Document) -> WaitlistEntry:
    """Return the waitlist entry that a subdocument of this slot describes."""
    return WaitlistEntry(
        WaitlistEntryId(str(subdocument["id"])),
        slot_id,
        UserId(str(subdocument["user"])),
        subdocument["since"],
        tuple(subdocument.get("groups", ())),
        to_waitlisted_by(subdocument),
        subdocument,
    )


def to_fields(slot: Slot) -> Document:
    """Return the fields of the facts about a slot, and what lists find and order it by."""
    facts = {
        each.stored_name: _to_stored(each.name, getattr(slot, each.name))
        for each in SLOT_FIELDS
        if getattr(slot, each.name) != each.default
    }
    return {**facts, **list_fields(facts)}


# What `list_fields` reads.
LIST_FIELD_SOURCES = ("title", "number", "location", "start", "end")


def list_fields(document: Document) -> Document:
    """Return what lists find and order a slot by, from its title, number, location and times."""
    title = document["title"]
    others = (document.get(name) or "" for name in ("location", "number"))
    return {
        "searchWords": to_stored_words(" ".join((title, *others))),
        "titleKey": sort_key(title),
        "spans": spans_of(document["start"], document["end"]),
    }


def numbers_query(campaign_id: CampaignId, numbers: Iterable[str]) -> Document:
    """Return the query for the slots of a campaign with these numbers that are not cancelled."""
    return {
        "campaign.id": ObjectId(campaign_id),
        "number": {"$in": list(numbers)},
        "status": {"$ne": SlotStatus.CANCELLED.value},
    }


def to_document(state: SlotState) -> Document:
    """Return the document of a new slot."""
    description = state.change.description
    document = {
        "_id": ObjectId(state.id),
        **to_fields(state.slot),
        **({"description": description} if isinstance(description, str) else {}),
        "version": state.version,
        "changedAt": state.changed_at,
        "remaining": state.remaining,
        "bookings": [],
        "waitlist": [],
    }
    return with_schema_version("slots", document)


def _to_stored(name: str, value: Any) -> Any:
    convert = _TO_STORED.get(name)
    return value if convert is None or value is None else convert(value)


def _to_cancellation(subdocument: Document) -> SlotCancellation:
    by = UserId(str(subdocument["by"]))
    return SlotCancellation(subdocument["at"], by, subdocument.get("reason"))


def _cancellation_to_subdocument(cancellation: SlotCancellation) -> Document:
    reason = {} if cancellation.reason is None else {"reason": cancellation.reason}
    return {"at": cancellation.at, "by": ObjectId(cancellation.by), **reason}


def _to_meetings(subdocuments: Iterable[Document]) -> tuple[Meeting, ...]:
    return tuple(Meeting(each["start"], each["end"]) for each in subdocuments)


def _meetings_to_subdocuments(meetings: Iterable[Meeting]) -> list[Document]:
    return [{"start": meeting.start, "end": meeting.end} for meeting in meetings]


def _to_series_id(object_id: ObjectId) -> SeriesId:
    return SeriesId(str(object_id))


# How attributes are converted whose stored values differ from their values in the domain.
_ENUMS = {
    each.name: UNKNOWN_MEMBERS[each.type] for each in SLOT_FIELDS if each.type in UNKNOWN_MEMBERS
}
FROM_STORED: dict[str, Callable[[Any], Any]] = {
    **{name: reader_of(unknown) for name, unknown in _ENUMS.items()},
    "cancellation": _to_cancellation,
    "terms": to_terms,
    "group_limits": to_group_limits,
    "only_for_groups": tuple,
    "meetings": _to_meetings,
    "series_id": _to_series_id,
    "resource": lambda resource: resource[0] if isinstance(resource, list) else resource,
    "several_resources": lambda names: tuple(names) if isinstance(names, list) else (),
}
_TO_STORED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_ENUMS, attrgetter("value")),
    "cancellation": _cancellation_to_subdocument,
    "terms": terms_to_document,
    "group_limits": group_limits_to_documents,
    "only_for_groups": list,
    "meetings": _meetings_to_subdocuments,
    "several_resources": list,
    "series_id": ObjectId,
}
_NAMES = [each.name for each in fields(SlotSettings)]
# What is declared after the facts that `_to_slot` names.
_LATER_FACTS = [
    (each.name, each.stored_name, FROM_STORED.get(each.name))
    for each in SLOT_FACTS
    if _NAMES.index(each.name) > _NAMES.index("admission")
]
