"""Campaigns in MongoDB, and how their terms reach their slots.

    {_id, name, terms, pending: bool, changedAt, touched}

A change is written to the campaign first and then to each of its slots. A process that dies in
between leaves `pending` behind, and whoever sweeps goes on from there.
"""

from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.campaigns import Campaign
from slotlock.domain.listing import Page, Position
from slotlock.domain.notes import Note
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignId
from slotlock.stores.batches import Batches
from slotlock.stores.figures import Figures
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.mongo import CAMPAIGNS_GATE, Database, Document
from slotlock.stores.notes import keep, together
from slotlock.stores.slot_documents import slot_of
from slotlock.stores.slot_looks import seen_by
from slotlock.stores.terms_documents import terms_document, terms_of
from slotlock.stores.unplaced import UnplacedPeople


class Campaigns:
    """The campaigns."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(CAMPAIGNS_GATE)
        self.lists = self.gate
        self._database = database
        self._campaigns = database["campaigns"]
        self._slots = database["slots"]
        self._users = database["users"]
        self._reads = Batches(self._read)
        # Reports take their time: one at most keeps others from the gate.
        reports = Gate(1)
        self.figures = Figures(database, reports, self.lists)
        self.unplaced = UnplacedPeople(database, reports, self.lists)

    async def prepare(self) -> None:
        """Create the indexes that are missing."""
        order = [("terms.opensAt", 1), ("_id", 1)]
        await self._campaigns.create_index(order, name="opens")
        only: Document = {"partialFilterExpression": {"pending": True}}
        await self._campaigns.create_index("pending", name="pending", **only)

    @gated
    async def add(self, campaign: Campaign, now: datetime, note: Note | None = None) -> None:
        """Keep a new campaign, and the note of it."""
        fields = {"_id": ObjectId(campaign.id), **_fields(campaign, now), "pending": False}

        async def write(session: AsyncClientSession) -> None:
            await self._campaigns.insert_one(fields, session=session)
            await keep(self._database, [note], session)

        await together(self._database, write)

    async def find(self, campaign_id: CampaignId) -> Campaign | None:
        """The campaign as it is now; None when there is none."""
        return await self._reads.do(campaign_id)

    async def _read(self, campaign_ids: list[CampaignId]) -> list[Campaign | None]:
        query = {"_id": {"$in": [ObjectId(campaign_id) for campaign_id in set(campaign_ids)]}}
        campaigns = [_campaign(document) async for document in self._campaigns.find(query)]
        found = {campaign.id: campaign for campaign in campaigns}
        return [found.get(campaign_id) for campaign_id in campaign_ids]

    @listed
    async def page(
        self, first: int, after: Position | None, *, unpublished: bool
    ) -> Page[Campaign]:
        """The next campaigns by their opening."""
        query: Document = {} if unpublished else {"terms.published": True}
        if after is not None:
            here = {"terms.opensAt": after.start, "_id": {"$gt": ObjectId(after.id)}}
            query["$or"] = [{"terms.opensAt": {"$gt": after.start}}, here]
        order = [("terms.opensAt", 1), ("_id", 1)]
        found = self._campaigns.find(query, sort=order, limit=first + 1)
        campaigns = [_campaign(document) async for document in found]
        return Page(tuple(campaigns[:first]), len(campaigns) > first)

    @gated
    async def change(
        self, before: Campaign, after: Campaign, now: datetime, note: Note | None = None
    ) -> bool:
        """Write a change of a campaign and the note of it; False when somebody wrote first."""
        seen = {"_id": ObjectId(before.id), "terms.version": before.terms.version}
        changes = {"$set": {**_fields(after, now), "pending": True}}

        async def write(session: AsyncClientSession) -> bool:
            done = await self._campaigns.update_one(seen, changes, session=session)
            if done.matched_count:
                await keep(self._database, [note], session)
            return done.matched_count == 1

        return await together(self._database, write)

    @gated
    async def spread(self, campaign: Campaign, now: datetime) -> None:
        """Give every slot of the campaign its terms, unless the slot has newer ones."""
        terms = terms_document(campaign.terms)
        older = {"campaign.id": terms["id"], "campaign.version": {"$lt": terms["version"]}}
        changes: Document = {
            "campaign": {"$literal": terms},
            "version": {"$add": ["$version", 1]},
            "changedAt": {"$max": ["$changedAt", now]},
        }
        if campaign.terms.published:  # who waits may be next, now or at the opening
            soon = {"$min": ["$due", max(now, campaign.terms.opens_at)]}
            waits = {"$gt": [{"$size": "$waiting"}, 0]}
            changes["due"] = {"$cond": [waits, soon, {"$ifNull": ["$due", "$$REMOVE"]}]}
        await self._slots.update_many(older, [{"$set": changes}])
        done = {"_id": terms["id"], "terms.version": terms["version"]}
        await self._campaigns.update_one(done, {"$set": {"pending": False}})

    @gated
    async def pending(self, since: datetime) -> list[Campaign]:
        """Campaigns whose last change, made before then, has not reached all their slots."""
        found = self._campaigns.find({"pending": True, "changedAt": {"$lt": since}}, limit=10)
        return [_campaign(document) async for document in found]

    @gated
    async def slots_of(self, campaign_id: CampaignId, now: datetime) -> Sequence[Slot]:
        """All the slots of a campaign, by start."""
        query = {"campaign.id": ObjectId(campaign_id)}
        order = [("start", 1), ("_id", 1)]
        found = self._slots.find(query, seen_by((), (), now, heads=1), sort=order)
        return [slot_of(document) async for document in found]

    @gated
    async def warm(self, campaign: Campaign) -> None:
        """Bring into MongoDB's memory what a rush will read: the slots and whoever may come."""
        async for _ in self._slots.find({"campaign.id": ObjectId(campaign.id)}):
            pass
        groups = [group for groups in campaign.terms.eligible[:1] for group in groups]
        people = {"groups": {"$in": groups}} if groups else {}
        async for _ in self._users.find(people, {"groups": 1}, limit=20_000):
            pass


def _fields(campaign: Campaign, now: datetime) -> Document:
    return {"name": campaign.name, "terms": terms_document(campaign.terms), "changedAt": now}


def _campaign(document: Document) -> Campaign:
    terms = terms_of(document["terms"])
    return Campaign(terms.campaign_id, document["name"], terms)
