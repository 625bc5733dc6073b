"""Stores campaigns, whose terms are copied to their slots.

    {_id, name, description?, terms, pending: bool, changedAt, schemaVersion, touchCount?}

A change is written to the campaign first and to each of its slots afterwards. If the process dies
in between, the campaign stays `pending`, and the sweeper continues.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.pagination import Page, Position
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import (
    CAMPAIGNS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited, limited_listing
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, insert_record
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.slots.documents import LOADED_FIELDS, to_slot_state
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection
from slotlock.infrastructure.mongo.terms_documents import (
    campaign_to_document,
    campaign_to_fields,
    terms_to_document,
    to_terms,
)
from slotlock.infrastructure.mongo.transactions import in_transaction

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
        self.list_limiter = self.limiter
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

        async def write(session: AsyncClientSession) -> None:
            await self._campaigns.insert_one(document, session=session)
            await insert_notes(self._database, [note], session)
            await insert_record(self._database, record, session)

        try:
            await in_transaction(self._database, write)
        except DuplicateKeyError:
            return False
        return True

    async def find(self, campaign_id: CampaignId) -> Campaign | None:
        """Return a campaign; None if there is none."""
        return await self._read_batcher.submit(campaign_id)

    async def _read_batch(self, campaign_ids: list[CampaignId]) -> list[Campaign | None]:
        query = {"_id": {"$in": [ObjectId(campaign_id) for campaign_id in set(campaign_ids)]}}
        documents = self._campaigns.find(query, WITHOUT_DESCRIPTION)
        campaigns = [_to_campaign(document) async for document in documents]
        found = {campaign.id: campaign for campaign in campaigns}
        return [found.get(campaign_id) for campaign_id in campaign_ids]

    @limited_listing
    async def page(
        self, first: int, after: Position | None, *, include_unpublished: bool
    ) -> Page[Campaign]:
        """Return the next campaigns by opening time."""
        query: Document = {} if include_unpublished else {"terms.published": True}
        if after is not None:
            same_time = {"terms.opensAt": after.start, "_id": {"$gt": ObjectId(after.id)}}
            query["$or"] = [{"terms.opensAt": {"$gt": after.start}}, same_time]
        order = [("terms.opensAt", 1), ("_id", 1)]
        found = self._campaigns.find(query, WITHOUT_DESCRIPTION, sort=order, limit=first + 1)
        campaigns = [_to_campaign(document) async for document in found]
        return Page(tuple(campaigns[:first]), len(campaigns) > first)

    @limited
    async def update(
        self, before: Campaign, after: Campaign, now: datetime, note: AuditNote | None = None
    ) -> bool:
        """Update a campaign with an audit note. Return False if it changed in the meantime."""
        loaded_version = {"_id": ObjectId(before.id), "terms.version": before.terms.version}
        changes: Document = {"$set": {**campaign_to_fields(after, now), "pending": True}}
        if after.description is None:
            changes["$unset"] = {"description": ""}

        async def write(session: AsyncClientSession) -> bool:
            result = await self._campaigns.update_one(loaded_version, changes, session=session)
            if result.matched_count:
                await insert_notes(self._database, [note], session)
            return result.matched_count == 1

        return await in_transaction(self._database, write)

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
        """Delete a campaign with an audit note. Return False if it changed, or got a slot.

        A slot that is created meanwhile writes to the campaign, too: one of both fails.
        """
        loaded_version = {"_id": ObjectId(campaign.id), "terms.version": campaign.terms.version}

        async def write(session: AsyncClientSession) -> bool:
            result = await self._campaigns.delete_one(loaded_version, session=session)
            if not result.deleted_count or await self._find_slot_id(campaign.id, session):
                await session.abort_transaction()
                return False
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
        found = self._slots.find(query, slot_projection(now), sort=order)
        return [to_slot_state(document) async for document in found]

    @limited
    async def find_slots_to_copy(self, campaign_id: CampaignId, limit: int) -> Sequence[Slot]:
        """Return the first slots of a campaign that are not cancelled, by start."""
        cancelled = SlotStatus.CANCELLED.value
        query = {"campaign.id": ObjectId(campaign_id), "status": {"$ne": cancelled}}
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
    return Campaign(terms.campaign_id, document["name"], terms)
