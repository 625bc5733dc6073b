"""Stores draws with their bases and results. `draw_documents` has the shapes of the documents."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import partial
from itertools import islice

from bson import ObjectId
from msgspec import convert
from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import BulkWriteError

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawId,
    pseudonym_of,
    rules_to_json,
)
from slotlock.domain.draws.draw import Draw, DrawAct, DrawState
from slotlock.domain.draws.drawing import DrawnEntry, WishOutcome
from slotlock.domain.draws.wish_closing import ClosedWishes
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher, chunked
from slotlock.infrastructure.draw_records import (
    NotBooked,
    outcome_to_json,
)
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.commands import find_each
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.draws.draw_documents import (
    entry_documents,
    to_blocked,
    to_draw,
    to_drawn,
    to_fields,
    to_subdocument,
)
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, indexes_of
from slotlock.infrastructure.mongo.transactions import (
    change_with_note,
    insert_unless_taken,
)
from slotlock.infrastructure.tasks import Signal

DUPLICATE_KEY = 11000
BATCH_SIZE = 1_000
MAX_DUE = 10
MAX_DRAWS = 100
ONE_ACTIVE = {"unique": True, "partialFilterExpression": {"active": True}}
DRAW_INDEXES = (
    *indexes_of(
        "draws",
        {
            "active": ([("campaign", 1)], ONE_ACTIVE),
            "campaign": ([("campaign", 1), ("active", -1), ("_id", -1)], {}),
            "due": ([("dueAt", 1)], {"sparse": True}),
        },
    ),
    *indexes_of(
        "draw_slots",
        {"slot": ([("draw", 1), ("root", 1), ("slot.id", 1)], {"unique": True})},
    ),
    *indexes_of(
        "draw_entries",
        {
            "leaf": ([("draw", 1), ("root", 1), ("leaf", 1)], {"unique": True}),
            "users": ([("users", 1), ("draw", 1)], {}),
        },
    ),
)
NEWEST_FIRST = [("campaign", 1), ("active", -1), ("_id", -1)]
UNIQUE_INDEXES = ("draws.active", "draw_slots.slot", "draw_entries.leaf")


@value_object
class DueDraw:
    """A draw with which a worker has to go on, and how often in a row it could not."""

    id: DrawId
    due_at: datetime
    failures: int


@value_object
class StoredEntry:
    """Who is behind an entry, by pseudonym in the order of its members."""

    leaf: str
    user_ids: tuple[UserId, ...]
    salt: str


@value_object
class OwnResult:
    """What a user sees of their entry: the salt of the pseudonyms and, once drawn, the result.

    `ruled_out` is the code of the refusal if a member of the entry was not eligible, and `blocked`
    has the wishes that no lot can give, with the reasons that records do not show. `not_booked` has
    the code of the reason for each slot that was drawn and could not be booked.
    """

    salt: str
    leaf: str
    pseudonym: str
    member_count: int
    ruled_out: str | None
    wishes: tuple[SlotId, ...]
    blocked: tuple[WishOutcome, ...]
    drawn: DrawnEntry | None
    not_booked: Mapping[SlotId, str] = field(default_factory=dict)


class DrawRepository:
    """Stores draws; every change of one is conditional on its version."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, required: RequiredIndexes
    ) -> None:
        self.limiter = limiter
        self._required = required
        self._database = database
        self._draws = database["draws"]
        self._slots = database["draw_slots"]
        self._entries = database["draw_entries"]
        self._latest_batcher = Batcher(self._read_latest, is_outage=is_unavailable)
        # Sent when this process changes a draw: its worker goes on with it at once.
        self.changed = Signal()

    @limited
    async def insert(self, draw: Draw, note: AuditNote | None) -> bool:
        """Insert a draw with an audit note. Return False if its campaign has an active one."""
        self._required.require(*UNIQUE_INDEXES)
        document = {"_id": ObjectId(draw.id), **to_fields(draw)}
        inserted = await insert_unless_taken(self._database, "draws", document, note)
        self.changed.send()
        return inserted

    async def find_latest(self, campaign_id: CampaignId) -> Draw | None:
        """Return the active draw of a campaign, or else the latest one."""
        return await self._latest_batcher.submit(campaign_id)

    @limited
    async def _read_latest(self, campaign_ids: list[CampaignId]) -> list[Draw | None]:
        query = {"campaign": {"$in": [ObjectId(each) for each in set(campaign_ids)]}}
        latest: dict[str, Document] = {}
        async for found in self._draws.find(query, {"rules": 0}, sort=NEWEST_FIRST):
            latest.setdefault(str(found["campaign"]), found)
        return [to_draw(latest[each]) if each in latest else None for each in campaign_ids]

    @limited
    async def find_all(self, campaign_id: CampaignId) -> list[Draw]:
        """Return the draws of a campaign, the newest first, at most MAX_DRAWS."""
        query = {"campaign": ObjectId(campaign_id)}
        found = self._draws.find(query, sort=NEWEST_FIRST, limit=MAX_DRAWS)
        return [to_draw(document) async for document in found]

    @limited
    async def find_each(self, draw_ids: Sequence[DrawId]) -> list[Draw | None]:
        """Return the draws with these ids, in order; None where there is none."""
        return await find_each(self._draws, draw_ids, to_draw)

    @limited
    async def find(self, draw_id: DrawId) -> Draw | None:
        """Return a draw; None if there is none."""
        found = await self._draws.find_one({"_id": ObjectId(draw_id)})
        return to_draw(found) if found else None

    @limited
    async def find_due(self, until: datetime) -> list[DueDraw]:
        """Return some of the draws with which a worker has to go on until then, by time."""
        query, fields = {"dueAt": {"$lte": until}}, {"dueAt": 1, "failures": 1}
        found = self._draws.find(query, fields, sort=[("dueAt", 1)], limit=MAX_DUE)
        return [
            DueDraw(DrawId(str(each["_id"])), each["dueAt"], each.get("failures", 0))
            async for each in found
        ]

    @limited
    async def defer(
        self, draw_id: DrawId, failures: int, problem: str, now: datetime, until: datetime
    ) -> None:
        """Record that a worker could not go on, and let it wait. It may be impossible to read.

        It does nothing to a draw that is not due any more.
        """
        query = {"_id": ObjectId(draw_id), "dueAt": {"$lte": now}}
        deferred = {"dueAt": until, "failures": failures, "problem": problem}
        await self._draws.update_one(query, {"$set": deferred})

    @limited
    async def end(self, campaign_id: CampaignId, at: datetime) -> None:
        """End the draws of a campaign that does not exist any more."""
        await end_draws(self._database, campaign_id, None, at)

    @limited
    async def update(self, before: Draw, after: Draw, note: AuditNote | None = None) -> bool:
        """Update a draw with an audit note. Return False if it changed in the meantime."""
        fields = to_fields(after)
        optional = ("active", "dueAt", "failures", "problem")
        removed = {name: "" for name in optional if name not in fields}
        change = {"$set": fields, "$unset": removed}
        query = {"_id": ObjectId(before.id), "version": before.version}
        update = partial(self._draws.find_one_and_update, query, change, {"_id": 1})
        updated = await change_with_note(self._database, update, note)
        self.changed.send()
        return updated

    @limited
    async def insert_basis(self, closed: ClosedWishes, root: str) -> None:
        """Store a basis under its root, if it is not there yet."""
        self._required.require(*UNIQUE_INDEXES)
        basis = closed.basis
        place = {"draw": ObjectId(basis.draw_id), "root": root}
        slots: Iterator[Document] = ({"slot": slot} for slot in rules_to_json(basis)["slots"])
        # Making all of them at once would stop everything else for half a second.
        for collection, documents in (
            (self._slots, slots),
            (self._entries, entry_documents(closed)),
        ):
            while batch := [{**place, **each} for each in islice(documents, BATCH_SIZE)]:
                try:
                    await collection.insert_many(batch, ordered=False)
                except BulkWriteError as error:
                    if any(each["code"] != DUPLICATE_KEY for each in error.details["writeErrors"]):
                        raise
        rules = {**rules_to_json(replace(basis, slots=())), "slots": None}
        await self._draws.update_one(
            {"_id": place["draw"], "root": None}, {"$set": {f"rules.{root}": rules}}
        )

    @limited
    async def delete_other_bases(self, draw: Draw) -> None:
        """Delete what closings at the same time have stored under other roots."""
        others = {"draw": ObjectId(draw.id), "root": {"$ne": draw.root}}
        await self._slots.delete_many(others)
        await self._entries.delete_many(others)

    @limited
    async def load_basis(self, draw: Draw, *, with_entries: bool = True) -> DrawBasis:
        """Return the basis of a closed draw; the rules and slots only, or with the entries."""
        place = {"draw": ObjectId(draw.id), "root": draw.root}
        found = await self._draws.find_one({"_id": place["draw"]}, {f"rules.{draw.root}": 1})
        rules: Document = found["rules"][draw.root] if found else {}
        slots = self._slots.find(place, {"slot": 1}, sort=[("slot.id", 1)])
        fields = {"_id": 0, "leaf": 1, "members": 1, "wishes": 1}
        order, shown = [("leaf", 1)], [each["slot"] async for each in slots]
        found_entries = self._entries.find(place, fields, sort=order, batch_size=BATCH_SIZE)
        entries = [each async for each in found_entries] if with_entries else []
        basis = {**rules, "slots": shown, "entries": entries}
        return await asyncio.to_thread(convert, basis, DrawBasis)

    @limited
    async def find_entries(self, draw: Draw) -> Mapping[str, StoredEntry]:
        """Return who is behind the entries of a closed draw, by leaf."""
        place = {"draw": ObjectId(draw.id), "root": draw.root}
        fields = {"leaf": 1, "users": 1, "salt": 1}
        found = self._entries.find(place, fields, batch_size=BATCH_SIZE)
        return {
            each["leaf"]: StoredEntry(
                each["leaf"],
                tuple(UserId(str(user)) for user in each["users"]),
                each.get("salt", ""),
            )
            async for each in found
        }

    @limited
    async def remove_users(self, user_ids: Sequence[UserId], draw: Draw | None = None) -> None:
        """Remove users from the entries of a draw, or of all that are over.

        An entry without users has no salt, so that nothing says whose it was.
        """
        users = [ObjectId(each) for each in user_ids]
        query: Document = {"users": {"$in": users}}
        if draw is None:
            draws = await self._entries.distinct("draw", query)
            over = {"_id": {"$in": draws}, "recordHash": {"$exists": True}}
            query["draw"] = {"$in": await self._draws.distinct("_id", over)}
        else:
            query["draw"] = ObjectId(draw.id)
        left = {"$setDifference": ["$users", users]}
        salt = {"$cond": [{"$eq": [left, []]}, "$$REMOVE", "$salt"]}
        await self._entries.update_many(query, [{"$set": {"users": left, "salt": salt}}])

    @limited
    async def save_results(self, draw: Draw, drawn: Sequence[DrawnEntry]) -> None:
        """Store the lots, numbers and outcomes of all entries."""
        place = {"draw": ObjectId(draw.id), "root": draw.root}
        for batch in chunked(drawn, BATCH_SIZE):
            updates = [
                UpdateOne(
                    {**place, "leaf": each.entry.leaf},
                    {
                        "$set": {
                            "lot": each.lot,
                            "number": each.number,
                            "outcomes": [outcome_to_json(outcome) for outcome in each.outcomes],
                        }
                    },
                )
                for each in batch
            ]
            await self._entries.bulk_write(updates, ordered=False)

    @limited
    async def find_result(self, draw: Draw, user_id: UserId) -> OwnResult | None:
        """Return the entry of a user, with its result once it is stored."""
        place = {"draw": ObjectId(draw.id), "root": draw.root, "users": ObjectId(user_id)}
        found = await self._entries.find_one(place)
        if found is None:
            return None
        return OwnResult(
            found["salt"],
            found["leaf"],
            pseudonym_of(found["salt"], user_id),
            len(found["members"]),
            found.get("ruledOut"),
            tuple(SlotId(each) for each in found["wishes"]),
            tuple(to_blocked(found).values()),
            to_drawn(found),
        )

    @limited
    async def find_written(self, draw: Draw) -> set[SlotId]:
        """Return the slots whose drawn places are all written."""
        written = {
            "draw": ObjectId(draw.id),
            "root": draw.root,
            "notBooked": {"$exists": True},
        }
        found = self._slots.find(written, {"slot.id": 1})
        return {SlotId(each["slot"]["id"]) async for each in found}

    @limited
    async def set_written(
        self, draw: Draw, slot_id: SlotId, not_booked: Sequence[NotBooked]
    ) -> None:
        """Record that all drawn places of a slot are written, apart from these."""
        query = {"draw": ObjectId(draw.id), "root": draw.root, "slot.id": slot_id}
        missing = [
            {"leaf": each.leaf, "pseudonym": each.pseudonym, "reason": each.reason}
            for each in not_booked
        ]
        await self._slots.update_one(query, {"$set": {"notBooked": missing}})

    @limited
    async def count_waitlisted(self, draw: Draw, slot_id: SlotId) -> int:
        """Return how many users were admitted to the waiting list of a slot.

        The write that lets them join sets it: see `WaitlistProgress`.
        """
        query = {"draw": ObjectId(draw.id), "root": draw.root, "slot.id": slot_id}
        found = await self._slots.find_one(query, {"waitlisted": 1})
        return found.get("waitlisted", 0) if found else 0

    @limited
    async def find_not_booked(self, draw: Draw, pseudonym: str | None = None) -> list[NotBooked]:
        """Return the places that were drawn and not booked, by slot; those of a user, or all."""
        lost: object = {"$exists": True} if pseudonym is None else pseudonym
        query = {"draw": ObjectId(draw.id), "root": draw.root, "notBooked.pseudonym": lost}
        fields = {"slot.id": 1, "notBooked": 1}
        found = self._slots.find(query, fields, sort=[("slot.id", 1)])
        return [
            NotBooked(
                each["leaf"], each["pseudonym"], SlotId(document["slot"]["id"]), each["reason"]
            )
            async for document in found
            for each in document["notBooked"]
            if pseudonym in (None, each["pseudonym"])
        ]


async def end_draws(
    database: Database,
    campaign_id: CampaignId,
    by: UserId | None,
    at: datetime,
    session: AsyncClientSession | None = None,
) -> None:
    """End the draws of a campaign that is deleted; a published one stays as it is.

    It reads none of them: one that cannot be read ends as well.
    """
    draws, of_campaign = database["draws"], {"campaign": ObjectId(campaign_id)}
    not_due = {"dueAt": "", "failures": "", "problem": ""}
    published = {**of_campaign, "acts.state": DrawState.PUBLISHED.value}
    await draws.update_many(published, {"$unset": not_due}, session=session)
    # The last text of the record of a closed draw is still to be stored.
    due = {"$cond": [{"$gt": ["$root", None]}, at, "$$REMOVE"]}
    act = {"$concatArrays": ["$acts", [to_subdocument(DrawAct(at, DrawState.CANCELLED, by=by))]]}
    ended: list[Document] = [
        {"$set": {"acts": act, "version": {"$add": ["$version", 1]}, "dueAt": due}},
        {"$unset": ["active", "failures", "problem"]},
    ]
    await draws.update_many({**of_campaign, "active": True}, ended, session=session)
