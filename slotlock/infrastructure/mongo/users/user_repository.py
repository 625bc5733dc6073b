"""Stores user accounts."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence, Set
from datetime import datetime

from bson import ObjectId, Regex
from pymongo import ReturnDocument
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import note_user_change
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.users.user import (
    MailTopic,
    Role,
    UndeliverableCount,
    User,
    UserFilter,
    UserGroup,
    UserId,
)
from slotlock.infrastructure.batching import Batcher, GroupBatcher
from slotlock.infrastructure.mongo.client import (
    USER_LISTS_CONCURRENCY,
    USERS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.commands import find_each, find_in_one_batch
from slotlock.infrastructure.mongo.concurrency_limiter import (
    ConcurrencyLimiter,
    limited,
    limited_listing,
)
from slotlock.infrastructure.mongo.expressions import in_group_sets
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, repair_outdated
from slotlock.infrastructure.mongo.search_words import search_query
from slotlock.infrastructure.mongo.transactions import in_transaction, insert_unless_taken
from slotlock.infrastructure.mongo.users import user_documents
from slotlock.infrastructure.mongo.users.account_admin_writer import AuditInfo, update_user
from slotlock.infrastructure.mongo.users.user_documents import (
    EMAIL_INDEX,
    PUBLIC_FIELDS,
    WITH_GUARDIANS_ONLY,
    in_families_of,
    in_groups,
    to_user,
)
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync

# A batch compares each family with the dependents of all.
FAMILIES_AT_ONCE = 100
LIST_FIELD_SOURCES = ("name", "email", "erasedAt", "familyName")


class UserRepository:
    """Inserts and finds users, and sets their roles and groups."""

    def __init__(
        self, database: Database, waitlist_groups: WaitlistGroupSync, required: RequiredIndexes
    ) -> None:
        self.limiter = ConcurrencyLimiter(USERS_CONCURRENCY)
        self.list_limiter = ConcurrencyLimiter(USER_LISTS_CONCURRENCY)
        self._database = database
        self._users = database["users"]
        self._read_batcher = Batcher(self._read_batch, is_outage=is_unavailable)
        self._dependents_batcher = Batcher(
            self._find_dependents_batch, FAMILIES_AT_ONCE, is_outage=is_unavailable
        )
        self._group_batcher = GroupBatcher(self._read_batch, is_outage=is_unavailable)
        self._waitlist_groups = waitlist_groups
        self._required = required

    async def backfill_list_fields(self) -> None:
        """Write what finds users in lists anew, where another folding wrote it."""
        derive = user_documents.list_fields_of_user
        await repair_outdated(self._users, LIST_FIELD_SOURCES, derive)

    @limited
    async def insert(
        self,
        name: str,
        login_name: str,
        role: Role,
        password_hash: str,
        now: datetime,
        *,
        self_registered: bool = False,
    ) -> User | None:
        """Insert a user; None if the name is taken. A role above member leaves an audit note."""
        self._required.require(EMAIL_INDEX)
        document = user_documents.to_new_document(name, login_name, role, password_hash, now)
        if self_registered:
            document["selfRegistered"] = True
        user = to_user(document)
        note = None
        if role is not Role.MEMBER:
            note = note_user_change(None, user, NoteAction.ROLE_SET, None, now)
        is_inserted = await insert_unless_taken(self._database, "users", document, note)
        return user if is_inserted else None

    @limited
    async def find_with_password_hash(self, login_name: str) -> tuple[User, str | None] | None:
        """Return the user with this login name and the password hash, which may be None."""
        document = await self._users.find_one({"email": login_name})
        return (to_user(document), document.get("passwordHash")) if document else None

    def find_soon(self, user_id: UserId) -> asyncio.Future[User | None]:
        """Queue the read of a user. The future has the user, or None if there is none."""
        return self._read_batcher.submit_nowait(user_id)

    async def find_many(self, user_ids: Iterable[UserId]) -> dict[UserId, User]:
        """Return those of the users who exist, by id."""
        found = await self._group_batcher.submit(list(user_ids))
        return {user.id: user for user in found if user is not None}

    async def find_dependents(self, guardians: Collection[UserId]) -> list[User]:
        """Return the users who have one of these guardians, by `sort_name`.

        Calls at once share a read.
        """
        return await self._dependents_batcher.submit(frozenset(guardians))

    @limited
    async def remove_guardian(self, guardian: UserId) -> None:
        """Let a user act for nobody any more. A dependent may have no guardian then."""
        others: Document = {"$setDifference": ["$guardians", [ObjectId(guardian)]]}
        rest: Document = {"$cond": [{"$eq": [others, []]}, "$$REMOVE", others]}
        query = {"guardians": ObjectId(guardian)}
        await self._users.update_many(query, [{"$set": {"guardians": rest}}])

    async def _find_dependents_batch(self, families: list[Set[UserId]]) -> list[list[User]]:
        guardians = {ObjectId(each) for family in families for each in family}
        query = {"guardians": {"$in": list(guardians)}}
        by_name = {"sortName": 1}
        documents = await find_in_one_batch(self._users, query, PUBLIC_FIELDS, sort=by_name)
        found = [to_user(document) for document in documents]
        return [
            [user for user in found if not family.isdisjoint(user.guardians)] for family in families
        ]

    async def _read_batch(self, user_ids: list[UserId]) -> list[User | None]:
        return await find_each(self._users, user_ids, to_user, PUBLIC_FIELDS)

    async def find_all(self) -> AsyncIterator[User]:
        """Yield all users, by login name."""
        async for document in (
            self._users.find({"erasedAt": None}, PUBLIC_FIELDS).sort("email", 1).hint("email")
        ):
            yield to_user(document)

    @limited_listing
    async def page(self, user_filter: UserFilter, first: int, after: str | None) -> Page[User]:
        """Return the next `first` users that the filter selects, by `sort_name`.

        The guardians of a group are among its users without a password, as they are invited. So are
        those of a campaign.
        """
        members = in_groups(user_filter.group)
        if user_filter.eligible_groups is not None:
            members = {"$and": [members, in_group_sets(user_filter.eligible_groups)]}
        if user_filter.without_password:
            members = await in_families_of(self._users, members)
        is_wide = user_filter.group_patterns or user_filter.eligible_groups is not None
        found = self._users.find(
            {**members, **_filter_query(user_filter, after)},
            PUBLIC_FIELDS,
            sort=[("sortName", 1)],
            limit=first + 1,
            # To sort the users of all classes that begin with 5, or all members, reads all first.
            hint="sort_name" if is_wide and not user_filter.without_password else None,
        )
        users = [to_user(document) async for document in found]
        return Page.of(users, first)

    @limited_listing
    async def page_of_groups(self, first: int, after: str | None) -> Page[UserGroup]:
        """Return the next `first` groups that users have, by name."""
        names: Document = {"groups": {"$gt": after or ""}}
        pipeline: list[Document] = [
            {"$match": names},
            {"$project": {"groups": 1}},
            {"$unwind": "$groups"},
            {"$match": names},
            {"$group": {"_id": "$groups", "count": {"$sum": 1}}},
            {"$sort": {"_id": 1}},
            {"$limit": first + 1},
        ]
        found = await (await self._users.aggregate(pipeline)).to_list()
        groups = tuple(UserGroup(each["_id"], each["count"]) for each in found)
        return Page.of(groups, first)

    @limited
    async def set_preferences(
        self,
        user_id: UserId,
        locale: str | Unchanged | None,
        wants: Mapping[MailTopic, bool],
        phone: str | Unchanged | None = UNCHANGED,
    ) -> User | None:
        """Set what users choose themselves, such as their language; None without such a user."""
        texts = {"locale": locale, "phone": phone}
        fields: Document = {
            name: {"$literal": text} if text else "$$REMOVE"
            for name, text in texts.items()
            if not isinstance(text, Unchanged)
        }
        if wants:
            refused = [topic.value for topic, is_wanted in wants.items() if not is_wanted]
            others = {
                "$setDifference": [
                    {"$ifNull": ["$refusedTopics", []]},
                    [each.value for each in wants],
                ]
            }
            fields["refusedTopics"] = {"$setUnion": [others, refused]}
        changed = await self._users.find_one_and_update(
            {"_id": ObjectId(user_id), "erasedAt": None},
            [{"$set": fields}],
            PUBLIC_FIELDS,
            return_document=ReturnDocument.AFTER,
        )
        return to_user(changed) if changed else None

    @limited
    async def set_undeliverable(self, user: User, since: datetime | None) -> None:
        """Record that mail servers reject the address of a user since then, or no longer do."""
        rejected = {"undeliverable": {"email": user.login_name, "at": since}}
        await self._users.update_one(
            {"_id": ObjectId(user.id), "email": user.login_name},
            {"$set": rejected} if since else {"$unset": {"undeliverable": ""}},
        )

    @limited
    async def clear_undeliverable(self, user_ids: Collection[UserId]) -> None:
        """Let the addresses of users count as deliverable."""
        ids = [ObjectId(each) for each in user_ids]
        query = {"_id": {"$in": ids}, "undeliverable.at": {"$exists": True}}
        await self._users.update_many(query, {"$unset": {"undeliverable": ""}})

    @limited_listing
    async def count_undeliverable(self) -> UndeliverableCount:
        """Return how many addresses are undeliverable, and since when."""
        at = "$undeliverable.at"
        times = {"first": {"$min": at}, "last": {"$max": at}}
        pipeline: list[Document] = [
            {"$match": {"undeliverable.at": {"$exists": True}}},
            {"$match": {"$expr": {"$eq": ["$undeliverable.email", "$email"]}}},
            {"$group": {"_id": None, "count": {"$sum": 1}, **times}},
        ]
        found = await (await self._users.aggregate(pipeline)).to_list()
        if not found:
            return UndeliverableCount(0)
        return UndeliverableCount(found[0]["count"], found[0]["first"], found[0]["last"])

    async def set_groups(
        self,
        user_id: UserId,
        groups: Sequence[str],
        by: UserId | None,
        now: datetime,
        role: Role | None = None,
    ) -> User | None:
        """Set a user's groups, also in the user's waitlist entries.

        Return None without a user, or if the user has another role than `role` now.
        """
        update = {"$set": {"groups": list(groups)}}
        audit_info = AuditInfo(NoteAction.GROUPS_SET, by, now)

        async def write(session: AsyncClientSession) -> User | None:
            query: Document = {"_id": ObjectId(user_id), "erasedAt": None}
            if role is not None:
                query["role"] = role.value
            changed = await update_user(self._database, query, update, audit_info, session)
            if changed is not None:
                await self._waitlist_groups.mark_pending([user_id], now, session)
            return changed

        changed = await self.limiter.run(lambda: in_transaction(self._database, write))
        if changed is not None:
            await self._waitlist_groups.sync_now([user_id], now)
        return changed


def _to_group_condition(pattern: str) -> str | Regex[str]:
    """Return a name, or the condition for a beginning; one of Python would not use the index."""
    return Regex(f"^{re.escape(pattern[:-1])}") if pattern.endswith("*") else pattern


def _filter_query(user_filter: UserFilter, after: str | None) -> Document:
    query: Document = {"erasedAt": None}
    if user_filter.text is not None and user_filter.group_patterns:
        # No name has a NUL, and BSON takes none in a pattern.
        words = sort_key(user_filter.text.replace("\0", " ")).split()
        if words:  # a text of an accent only has none
            query["$and"] = [{"sortName": Regex(f"^[^\t]*{re.escape(word)}")} for word in words]
    elif user_filter.text is not None:
        query |= search_query(user_filter.text)
    if user_filter.group_patterns:
        query["groups"] = {"$in": list(map(_to_group_condition, user_filter.group_patterns))}
    for name, value in (
        ("banned", user_filter.banned),
        ("withoutPassword", user_filter.without_password),
        ("selfRegistered", user_filter.self_registered),
    ):
        if value is not None:
            query[name] = value or None
    if user_filter.without_password:
        query["$nor"] = [WITH_GUARDIANS_ONLY]
    if after is not None:
        query["sortName"] = {"$gt": after}
    return query
