"""Campaigns in MongoDB, and how their terms reach their slots.

    {_id, name, terms, pending: bool, changedAt, touched}

A change is written to the campaign first and then to each of its slots. A process that dies in
between leaves `pending` behind, and whoever sweeps goes on from there.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.slot import Slot
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
from slotlock.infrastructure.mongo.slots.documents import to_slot
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection
from slotlock.infrastructure.mongo.terms_documents import terms_to_document, to_terms
from slotlock.infrastructure.mongo.transactions import in_transaction


class CampaignRepository:
    """The campaigns."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(CAMPAIGNS_CONCURRENCY)
        self.list_limiter = self.limiter
        self._database = database
        self._campaigns = database["campaigns"]
        self._slots = database["slots"]
        self._users = database["users"]
        self._read_batcher = Batcher(self._read_batch, is_outage=is_unavailable)

    async def create_indexes(self) -> None:
        """Create the indexes that are missing."""
        order = [("terms.opensAt", 1), ("_id", 1)]
        await self._campaigns.create_index(order, name="opens_at")
        only: Document = {"partialFilterExpression": {"pending": True}}
        await self._campaigns.create_index("pending", name="pending", **only)

    @limited
    async def insert(
        self, campaign: Campaign, now: datetime, note: AuditNote | None = None
    ) -> None:
        """Keep a new campaign, and the note of it."""
        fields = {"_id": ObjectId(campaign.id), **_to_fields(campaign, now), "pending": False}

        async def write(session: AsyncClientSession) -> None:
            await self._campaigns.insert_one(fields, session=session)
            await insert_notes(self._database, [note], session)

        await in_transaction(self._database, write)

    async def find(self, campaign_id: CampaignId) -> Campaign | None:
        """The campaign as it is now; None when there is none."""
        return await self._read_batcher.submit(campaign_id)

    async def _read_batch(self, campaign_ids: list[CampaignId]) -> list[Campaign | None]:
        query = {"_id": {"$in": [ObjectId(campaign_id) for campaign_id in set(campaign_ids)]}}
        campaigns = [_to_campaign(document) async for document in self._campaigns.find(query)]
        found = {campaign.id: campaign for campaign in campaigns}
        return [found.get(campaign_id) for campaign_id in campaign_ids]

    @limited_listing
    async def page(
        self, first: int, after: Position | None, *, include_unpublished: bool
    ) -> Page[Campaign]:
        """The next campaigns by their opening."""
        query: Document = {} if include_unpublished else {"terms.published": True}
        if after is not None:
            here = {"terms.opensAt": after.start, "_id": {"$gt": ObjectId(after.id)}}
            query["$or"] = [{"terms.opensAt": {"$gt": after.start}}, here]
        order = [("terms.opensAt", 1), ("_id", 1)]
        found = self._campaigns.find(query, sort=order, limit=first + 1)
        campaigns = [_to_campaign(document) async for document in found]
        return Page(tuple(campaigns[:first]), len(campaigns) > first)

    @limited
    async def update(
        self, before: Campaign, after: Campaign, now: datetime, note: AuditNote | None = None
    ) -> bool:
        """Write a change of a campaign and the note of it; False when somebody wrote first."""
        seen = {"_id": ObjectId(before.id), "terms.version": before.terms.version}
        changes = {"$set": {**_to_fields(after, now), "pending": True}}

        async def write(session: AsyncClientSession) -> bool:
            done = await self._campaigns.update_one(seen, changes, session=session)
            if done.matched_count:
                await insert_notes(self._database, [note], session)
            return done.matched_count == 1

        return await in_transaction(self._database, write)

    @limited
    async def propagate_terms(self, campaign: Campaign, now: datetime) -> None:
        """Give every slot of the campaign its terms, unless the slot has newer ones."""
        terms = terms_to_document(campaign.terms)
        older = {"campaign.id": terms["id"], "campaign.version": {"$lt": terms["version"]}}
        changes: Document = {
            "campaign": {"$literal": terms},
            "version": {"$add": ["$version", 1]},
            "changedAt": {"$max": ["$changedAt", now]},
        }
        if campaign.terms.published:  # who waits may be next, now or at the opening
            soon = {"$min": ["$nextDeadline", max(now, campaign.terms.opens_at)]}
            waits = {"$gt": [{"$size": "$waitlist"}, 0]}
            changes["nextDeadline"] = {
                "$cond": [waits, soon, {"$ifNull": ["$nextDeadline", "$$REMOVE"]}]
            }
        await self._slots.update_many(older, [{"$set": changes}])
        done = {"_id": terms["id"], "terms.version": terms["version"]}
        await self._campaigns.update_one(done, {"$set": {"pending": False}})

    @limited
    async def find_pending(self, changed_before: datetime) -> list[Campaign]:
        """Campaigns whose last change, made before then, has not reached all their slots."""
        found = self._campaigns.find(
            {"pending": True, "changedAt": {"$lt": changed_before}}, limit=10
        )
        return [_to_campaign(document) async for document in found]

    @limited
    async def find_slots(self, campaign_id: CampaignId, now: datetime) -> Sequence[Slot]:
        """All the slots of a campaign, by start."""
        query = {"campaign.id": ObjectId(campaign_id)}
        order = [("start", 1), ("_id", 1)]
        found = self._slots.find(query, slot_projection(now), sort=order)
        return [to_slot(document) async for document in found]

    @limited
    async def warm_cache(self, campaign: Campaign) -> None:
        """Bring into MongoDB's memory what a rush will read: the slots and whoever may come."""
        async for _ in self._slots.find({"campaign.id": ObjectId(campaign.id)}):
            pass
        groups = [group for groups in campaign.terms.eligible_groups[:1] for group in groups]
        people = {"groups": {"$in": groups}} if groups else {}
        async for _ in self._users.find(people, {"groups": 1}, limit=20_000):
            pass


def _to_fields(campaign: Campaign, now: datetime) -> Document:
    return {"name": campaign.name, "terms": terms_to_document(campaign.terms), "changedAt": now}


def _to_campaign(document: Document) -> Campaign:
    terms = to_terms(document["terms"])
    return Campaign(terms.campaign_id, document["name"], terms)
