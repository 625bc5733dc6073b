"""Stores campaigns, whose terms are copied to their slots.

    {_id, name, description?, mailNote?, publishedAt?, terms, pending: bool, changedAt,
     schemaVersion, touchCount?}

A change is written to the campaign first and to each of its slots afterwards. If the process dies
in between, the campaign stays `pending`, and the sweeper continues.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import OtherBooking
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.pagination import Page, Position, TimePage
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import (
    CAMPAIGNS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_each
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.document_parts import (
    campaign_to_document,
    campaign_to_fields,
    terms_to_document,
    to_terms,
)
from slotlock.infrastructure.mongo.draws.draw_repository import end_draws
from slotlock.infrastructure.mongo.expressions import follows, page_by_time
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.slots.slot_documents import (
    LOADED_FIELDS,
    numbers_query,
    to_slot_state,
)
from slotlock.infrastructure.mongo.slots.slot_query import find_states
from slotlock.infrastructure.mongo.transactions import (
    change_with_note,
    in_transaction,
    insert_unless_taken,
)

WITHOUT_DESCRIPTION = {"description": 0}
PARTIAL_PENDING = {"partialFilterExpression": {"pending": True}}
CAMPAIGN_INDEXES = indexes_of(
    "campaigns",
    {
        "opens_at": ([("terms.opensAt", 1), ("_id", 1)], {}),
        "pending": ([("pending", 1)], PARTIAL_PENDING),
    },
)


class CampaignRepository:
    """Stores campaigns, and copies their terms to their slots."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(CAMPAIGNS_CONCURRENCY)
        self._database = database
        self._campaigns = database["campaigns"]
        self._slots = database["slots"]
        self._users = database["users"]
        self._read_batcher = Batcher(self._read_batch, is_outage=is_unavailable)

    @limited
    async def insert(
        self,
        campaign: Campaign,
        now: datetime,
        note: AuditNote | None = None,
        record: IdempotencyRecord | None = None,
    ) -> bool:
        """Insert a campaign with its audit note and the record of its idempotency key.

        Return False if the key has a record by now.
        """
        document = campaign_to_document(campaign, now)
        return await insert_unless_taken(self._database, "campaigns", document, note, record)

    async def find(self, campaign_id: CampaignId) -> Campaign | None:
        """Return a campaign; None if there is none."""
        return await self._read_batcher.submit(campaign_id)

    async def _read_batch(self, campaign_ids: list[CampaignId]) -> list[Campaign | None]:
        return await find_each(self._campaigns, campaign_ids, _to_campaign, WITHOUT_DESCRIPTION)

    async def page(self, page: TimePage, *, include_unpublished: bool) -> Page[Campaign]:
        """Return a page of the campaigns, which last from their opening to their closing."""
        query: Document = {} if include_unpublished else {"terms.published": True}
        times = "terms.opensAt", "terms.closesAt"
        return await page_by_time(query, page, self._read_page, *times)

    @limited
    async def _read_page(
        self, query: Document, direction: int, first: int, after: Position | None
    ) -> Page[Campaign]:
        if after is not None:
            bounds = follows("terms.opensAt", after.start, after.id, direction)
            query = {"$and": [query, *bounds]}
        order = [("terms.opensAt", direction), ("_id", direction)]
        found = self._campaigns.find(query, WITHOUT_DESCRIPTION, sort=order, limit=first + 1)
        campaigns = [_to_campaign(document) async for document in found]
        return Page.of(campaigns, first)

    @limited
    async def find_unfinished(self, now: datetime, limit: int) -> list[Campaign]:
        """Return the first campaigns by opening time that have not closed."""
        query, order = {"terms.closesAt": {"$gt": now}}, [("terms.opensAt", 1), ("_id", 1)]
        found = self._campaigns.find(query, WITHOUT_DESCRIPTION, sort=order, limit=limit)
        return [_to_campaign(document) async for document in found]

    @limited
    async def update(
        self, before: Campaign, after: Campaign, now: datetime, note: AuditNote | None = None
    ) -> bool:
        """Update a campaign with an audit note. Return False if it changed in the meantime."""
        loaded_version = {"_id": ObjectId(before.id), "terms.version": before.terms.version}
        changes: Document = {"$set": {**campaign_to_fields(after, now), "pending": True}}
        optional = {
            "description": after.description,
            "mailNote": after.mail_note,
            "publishedAt": after.published_at,
        }
        if removed := {name: "" for name, value in optional.items() if value is None}:
            changes["$unset"] = removed
        change = partial(self._campaigns.find_one_and_update, loaded_version, changes, {"_id": 1})
        return await change_with_note(self._database, change, note)

    @limited
    async def has_slots(self, campaign_id: CampaignId) -> bool:
        """Return whether a slot belongs to a campaign."""
        return await self._find_slot_id(campaign_id) is not None

    async def _find_slot_id(
        self, campaign_id: CampaignId, session: AsyncClientSession | None = None
    ) -> Document | None:
        query = {"campaign.id": ObjectId(campaign_id)}
        return await self._slots.find_one(query, {"_id": 1}, session=session)

    @limited
    async def delete(self, campaign: Campaign, note: AuditNote) -> bool:
        """Delete a campaign with an audit note, and end its draw.

        Return False if it changed, or got a slot.

        A slot that is created meanwhile writes to the campaign, too: one of both fails.
        """
        loaded_version = {"_id": ObjectId(campaign.id), "terms.version": campaign.terms.version}

        async def write(session: AsyncClientSession) -> bool:
            result = await self._campaigns.delete_one(loaded_version, session=session)
            if not result.deleted_count or await self._find_slot_id(campaign.id, session):
                await session.abort_transaction()
                return False
            await end_draws(self._database, campaign.id, note.by, note.at, session)
            await insert_notes(self._database, [note], session)
            return True

        return await in_transaction(self._database, write)

    @limited
    async def propagate_terms(self, campaign: Campaign, now: datetime) -> None:
        """Copy the terms to every slot of the campaign that has older ones."""
        terms = terms_to_document(campaign.terms)
        older = {"campaign.id": terms["id"], "campaign.version": {"$lt": terms["version"]}}
        changes: Document = {
            "campaign": {"$literal": terms},
            "version": {"$add": ["$version", 1]},
            "changedAt": {"$max": ["$changedAt", now]},
        }
        if campaign.terms.published:  # the sweeper may promote waitlists, now or at the opening
            deadline = {"$min": ["$nextDeadline", max(now, campaign.terms.opens_at)]}
            has_waitlist = {"$gt": [{"$size": "$waitlist"}, 0]}
            changes["nextDeadline"] = {
                "$cond": [has_waitlist, deadline, {"$ifNull": ["$nextDeadline", "$$REMOVE"]}]
            }
        await self._slots.update_many(older, [{"$set": changes}])
        unchanged = {"_id": terms["id"], "terms.version": terms["version"]}
        await self._campaigns.update_one(unchanged, {"$set": {"pending": False}})

    @limited
    async def find_pending(self, changed_before: datetime) -> list[Campaign]:
        """Return campaigns whose terms, changed before a time, are not in all slots yet."""
        found = self._campaigns.find(
            {"pending": True, "changedAt": {"$lt": changed_before}}, WITHOUT_DESCRIPTION, limit=10
        )
        return [_to_campaign(document) async for document in found]

    @limited
    async def find_slots(self, campaign_id: CampaignId, now: datetime) -> Sequence[SlotState]:
        """Return all slots of a campaign, by start."""
        query = {"campaign.id": ObjectId(campaign_id)}
        order = [("start", 1), ("_id", 1)]
        return await find_states(self._slots, query, now, sort=order)

    @limited
    async def find_bookings(
        self,
        campaign_id: CampaignId,
        slots: Sequence[Slot],
        user_ids: Sequence[UserId],
        now: datetime,
    ) -> Mapping[UserId, Sequence[OtherBooking]]:
        """Return by user all bookings in a campaign, and those that count for its slots elsewhere.

        Elsewhere these are bookings at the time of the slots, and in their choice groups.
        """
        wanted: list[Document] = [{"campaign.id": ObjectId(campaign_id)}]
        if choices := {slot.choice_group for slot in slots} - {None}:
            wanted.append({"choiceGroup": {"$in": list(choices)}})
        if exclusive := [slot for slot in slots if slot.terms and slot.terms.forbid_overlap]:
            first, last = min(slot.start for slot in exclusive), max(slot.end for slot in exclusive)
            at_that_time = {"end": {"$gt": first}, "start": {"$lt": last}}
            wanted.append({"campaign.forbidOverlap": True, **at_that_time})
        query = {
            "bookings.user": {"$in": [ObjectId(user_id) for user_id in user_ids]},
            "status": {"$ne": SlotStatus.CANCELLED.value},
            "$or": wanted,
        }
        states = await find_states(self._slots, query, now, user_ids)
        bookings: dict[UserId, list[OtherBooking]] = {user_id: [] for user_id in user_ids}
        for state in sorted(states, key=lambda each: (each.slot.start, each.id)):
            for booking in state.bookings:
                if booking.user_id in bookings:
                    bookings[booking.user_id].append(OtherBooking(booking, state.slot))
        return bookings

    @limited
    async def find_slot_ids(
        self,
        campaign_id: CampaignId,
        slot_ids: Sequence[SlotId] | None,
        *,
        ends_after: datetime,
        limit: int,
        include_hidden: bool,
    ) -> list[SlotId]:
        """Return the first slots of a campaign by start, or those of these slots in any order."""
        query: Document = {"campaign.id": ObjectId(campaign_id), "end": {"$gt": ends_after}}
        if not include_hidden:
            query["status"] = {"$ne": SlotStatus.DRAFT.value}
            query["campaign.published"] = True
        order, index = [("start", 1), ("_id", 1)], "campaign"
        if slot_ids is not None:
            query["_id"] = {"$in": [ObjectId(slot_id) for slot_id in slot_ids]}
            order, index = [], "_id_"
        found = self._slots.find(query, {"_id": 1}, sort=order, limit=limit, hint=index)
        return [SlotId(str(document["_id"])) async for document in found]

    @limited
    async def find_numbered(self, campaign_id: CampaignId, number: str) -> SlotId | None:
        """Return the slot of a campaign with a number that is not cancelled, if there is one."""
        query = numbers_query(campaign_id, (number,))
        found = await self._slots.find_one(query, {"_id": 1}, hint="campaign")
        return None if found is None else SlotId(str(found["_id"]))

    @limited
    async def find_slots_to_copy(self, campaign_id: CampaignId, limit: int) -> Sequence[Slot]:
        """Return the first slots of a campaign that are not cancelled, by start."""
        cancelled = SlotStatus.CANCELLED.value
        query = {"campaign.id": ObjectId(campaign_id), "status": {"$ne": cancelled}}
        return await self._find_slots(query, limit)

    @limited
    async def find_all_slots(self, campaign_id: CampaignId) -> Sequence[Slot]:
        """Return all slots of a campaign, by start, without their bookings."""
        return await self._find_slots({"campaign.id": ObjectId(campaign_id)})

    async def _find_slots(self, query: Document, limit: int = 0) -> Sequence[Slot]:
        order, without_users = [("start", 1), ("_id", 1)], dict.fromkeys(LOADED_FIELDS, 1)
        found = self._slots.find(query, without_users, sort=order, limit=limit)
        return [
            to_slot_state({**document, "bookings": [], "waitlist": []}).slot
            async for document in found
        ]

    @limited
    async def warm_cache(self, campaign: Campaign) -> None:
        """Load what a rush will read into MongoDB's cache: the slots and the eligible users."""
        async for _ in self._slots.find({"campaign.id": ObjectId(campaign.id)}):
            pass
        groups = [group for groups in campaign.terms.eligible_groups[:1] for group in groups]
        eligible = {"groups": {"$in": groups}} if groups else {}
        async for _ in self._users.find(eligible, {"groups": 1}, limit=20_000):
            pass


def _to_campaign(document: Document) -> Campaign:
    terms = to_terms(document["terms"])
    return Campaign(
        terms.campaign_id,
        document["name"],
        terms,
        mail_note=document.get("mailNote"),
        published_at=document.get("publishedAt"),
    )
