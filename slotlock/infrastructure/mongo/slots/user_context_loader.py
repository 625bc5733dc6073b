"""Loads the data of users that decisions need: groups, other bookings, a version.

    user_versions: {_id: user, version}

The version counts the user's bookings in slots where other bookings matter. Each such booking
increments the version that its decision was based on, so that of two concurrent ones only one is
written.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import OtherBooking, UserContext, UserContexts
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.mongo.client import Database, Document, is_unavailable
from slotlock.infrastructure.mongo.commands import find_in_one_batch
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.slots.slot_query import slot_projection

# A query may be for all users whom the admission queue serves at once.
CONTEXT_BATCH_SIZE = 50
NO_FIELDS: Document = {}


@value_object
class _ContextQuery:
    """The users whose contexts to load, and the slots to decide on."""

    user_ids: Set[UserId]
    slots: Sequence[Slot]
    now: datetime

    @property
    def needs_groups(self) -> bool:
        """Whether the users' groups matter in these slots."""
        return any(slot.needs_user_groups for slot in self.slots)

    @property
    def needs_other_bookings(self) -> bool:
        """Whether the users' bookings in other slots matter in these slots."""
        return any(slot.depends_on_other_bookings for slot in self.slots)

    def part_of(self, shared: Mapping[UserId, UserContext]) -> dict[UserId, UserContext]:
        """Return of a result for several queries what this query alone would have returned."""
        matters = _Relevance.of(self.slots)
        return {
            user_id: UserContext(
                user_id,
                shared[user_id].groups if self.needs_groups else (),
                shared[user_id].version if self.needs_other_bookings else 0,
                tuple(filter(matters.includes, shared[user_id].bookings)),
                shared[user_id].email_verified,
            )
            for user_id in self.user_ids
        }


@value_object
class _Relevance:
    """In which other slots a booking counts for one in some slots."""

    choice_groups: frozenset[str]
    campaign_ids: frozenset[CampaignId]
    # The time in which no meeting may overlap, from the first start to the last end.
    period: tuple[datetime, datetime] | None

    @classmethod
    def of(cls, slots: Sequence[Slot]) -> "_Relevance":
        """Return what counts for bookings in these slots."""
        limiting = [(slot, slot.terms) for slot in slots if slot.terms is not None]
        exclusive = [slot for slot, terms in limiting if terms.forbid_overlap]
        return cls(
            frozenset(slot.choice_group for slot in slots if slot.choice_group is not None),
            frozenset(terms.campaign_id for _, terms in limiting if terms.counts_bookings),
            (min(slot.start for slot in exclusive), max(slot.end for slot in exclusive))
            if exclusive
            else None,
        )

    def includes(self, other: OtherBooking) -> bool:
        """Return whether a booking in another slot counts."""
        slot, terms = other.slot, other.slot.terms
        if slot.choice_group in self.choice_groups:
            return True
        if terms is None:
            return False
        if terms.campaign_id in self.campaign_ids:
            return True
        overlaps = (
            self.period is not None and slot.end > self.period[0] and slot.start < self.period[1]
        )
        return terms.forbid_overlap and overlaps

    def to_queries(self) -> list[Document]:
        """Return the queries for the slots in which a booking counts."""
        queries: list[Document] = []
        if self.choice_groups:
            queries.append({"choiceGroup": {"$in": sorted(self.choice_groups)}})
        if self.campaign_ids:
            queries.append(
                {"campaign.id": {"$in": [ObjectId(id_) for id_ in sorted(self.campaign_ids)]}}
            )
        if self.period is not None:
            within = {"end": {"$gt": self.period[0]}, "start": {"$lt": self.period[1]}}
            queries.append({"campaign.forbidOverlap": True, **within})
        return queries


class UserContextLoader:
    """Loads the contexts of users for decisions in slots."""

    def __init__(self, database: Database, *, require_verified_email: bool = False) -> None:
        self._require_verified_email = require_verified_email
        self._slots = database["slots"]
        self._user_versions = database["user_versions"]
        self._users = database["users"]
        self._load_batcher = Batcher(self._load_batch, CONTEXT_BATCH_SIZE, is_outage=is_unavailable)

    async def load(
        self, user_ids: Set[UserId], slots: Sequence[Slot], now: datetime
    ) -> UserContexts:
        """Return what matters of these users for decisions in these slots."""
        query = _ContextQuery(user_ids, slots, now)
        contexts = await self._load_batcher.submit(query)
        return UserContexts(contexts, self._require_verified_email)

    async def _load_batch(
        self, queries: list[_ContextQuery]
    ) -> Sequence[dict[UserId, UserContext] | Exception]:
        try:
            shared = await self._load_all(*queries)
        except Exception as error:
            if is_unavailable(error) or len(queries) == 1:
                raise
        else:
            return [shared] if len(queries) == 1 else [query.part_of(shared) for query in queries]
        # A document that cannot be read is the failure of the callers that need it only.
        return [await self._load_or_error(query) for query in queries]

    async def _load_or_error(self, query: _ContextQuery) -> dict[UserId, UserContext] | Exception:
        try:
            return await self._load_all(query)
        except Exception as error:
            return error

    async def _load_all(self, *queries: _ContextQuery) -> dict[UserId, UserContext]:
        # The versions are read before the bookings: a booking that is written in between changes
        # the version, and the write that was decided without it fails.
        user_ids = sorted({user_id for query in queries for user_id in query.user_ids})
        slots = [slot for query in queries for slot in query.slots]
        now = max(query.now for query in queries)
        users = [ObjectId(user_id) for user_id in user_ids]
        needs_versions = any(query.needs_other_bookings for query in queries)
        needs_groups = any(query.needs_groups for query in queries)
        needs_emails = self._require_verified_email
        for slot in slots:
            if slot.terms is not None and slot.terms.require_verified_email:
                needs_emails = True
        fields = ("groups", *(("email", "verifiedEmail") if needs_emails else ()))
        versions, accounts = await asyncio.gather(
            _find_fields(self._user_versions, ("version",), users if needs_versions else []),
            _find_fields(self._users, fields, users if needs_groups or needs_emails else []),
        )
        bookings: dict[UserId, list[OtherBooking]] = {}
        for other in await self._find_other_bookings(user_ids, slots, now):
            bookings.setdefault(other.booking.user_id, []).append(other)
        return {
            user_id: UserContext(
                user_id,
                tuple(accounts.get(user, NO_FIELDS).get("groups", ())),
                versions.get(user, NO_FIELDS).get("version", 0),
                tuple(bookings.get(user_id, ())),
                not needs_emails or _is_verified(accounts.get(user, NO_FIELDS)),
            )
            for user_id, user in zip(user_ids, users, strict=True)
        }

    async def _find_other_bookings(
        self, user_ids: Sequence[UserId], slots: Sequence[Slot], now: datetime
    ) -> list[OtherBooking]:
        wanted = _Relevance.of(slots).to_queries()
        if not wanted:
            return []
        query: Document = {
            "bookings.user": {"$in": [ObjectId(user_id) for user_id in user_ids]},
            "status": {"$ne": SlotStatus.CANCELLED.value},
            "$or": wanted,
        }
        found = await find_in_one_batch(self._slots, query, slot_projection(now, user_ids))
        states = [to_slot_state(document) for document in found]
        return [OtherBooking(each, state.slot) for state in states for each in state.bookings]


async def _find_fields(
    collection: AsyncCollection[Document], fields: Sequence[str], users: list[ObjectId]
) -> dict[ObjectId, Document]:
    """Return documents of users with only these fields, by user."""
    if not users:
        return {}
    projection = dict.fromkeys(fields, 1)
    found = await find_in_one_batch(collection, {"_id": {"$in": users}}, projection, len(users))
    return {document["_id"]: document for document in found}


def _is_verified(account: Document) -> bool:
    """Return whether the address is verified. An account with a user name has none to verify."""
    email = account.get("email", "")
    return "@" not in email or account.get("verifiedEmail") == email


def users_with_new_versions(after: SlotState) -> set[UserId]:
    """Return the users whose versions a change of a slot increments."""
    if not after.slot.depends_on_other_bookings:
        return set()
    # Confirmed holds count as well: a booking elsewhere may rely on their expiry.
    return {booking.user_id for booking in (*after.change.added, *after.change.changed)}


def user_version_updates(
    after: SlotState, users: UserContexts
) -> Iterator[tuple[UserId, Document]]:
    """Yield the updates of user versions that a change of a slot requires, for an `update` command.

    Each is conditional on the version that was loaded.
    """
    for user_id in sorted(users_with_new_versions(after)):
        if context := users.context_of(user_id):
            yield user_id, _version_update(user_id, context.version)


def _version_update(user_id: UserId, version: int) -> Document:
    loaded: Document = {"_id": ObjectId(user_id), "version": version}
    if version:
        return {"q": loaded, "u": {"$inc": {"version": 1}}}
    # If another transaction inserts the first version, this upsert has a duplicate key.
    return {"q": loaded, "u": {"$set": {"version": 1}}, "upsert": True}
