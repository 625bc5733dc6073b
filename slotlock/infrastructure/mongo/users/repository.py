"""Stores user accounts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.notes import AuditNote, note_user_change
from slotlock.domain.shared.pagination import Page
from slotlock.domain.users.user import Role, User, UserFilter, UserId
from slotlock.infrastructure.batching import Batcher, GroupBatcher
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import (
    USER_LISTS_CONCURRENCY,
    USERS_CONCURRENCY,
    Database,
    Document,
    is_unavailable,
)
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited, limited_listing
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes, find_by_index
from slotlock.infrastructure.mongo.search_words import HAS_OUTDATED_WORDS, search_query
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users import documents
from slotlock.infrastructure.mongo.users.account_updates import (
    AuditInfo,
    update_user,
)
from slotlock.infrastructure.mongo.users.documents import EMAIL_INDEX, PUBLIC_FIELDS, to_user
from slotlock.infrastructure.mongo.users.waitlist_groups import WaitlistGroupSync

REPAIR_BATCH_SIZE = 1_000
SEARCH_WORD_SOURCES = ("name", "email", "erasedAt")


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
        self._group_batcher = GroupBatcher(self._read_batch, is_outage=is_unavailable)
        self._waitlist_groups = waitlist_groups
        self._required = required

    async def repair_search_words(self) -> None:
        """Write the search words of users whom an older version stored."""
        while found := await find_by_index(
            self._users, "folding", HAS_OUTDATED_WORDS, SEARCH_WORD_SOURCES, REPAIR_BATCH_SIZE
        ):
            # A user who changes meanwhile is no longer as they were found.
            updates = [
                UpdateOne(each, {"$set": {"searchWords": documents.stored_words_of_user(each)}})
                for each in found
            ]
            await self._users.bulk_write(updates, ordered=False)

    @limited
    async def insert(
        self,
        name: str,
        email: str,
        role: Role,
        password_hash: str,
        now: datetime,
        *,
        self_registered: bool = False,
    ) -> User | None:
        """Insert a user; None if the address is taken. A role above member leaves an audit note."""
        self._required.require(EMAIL_INDEX)
        document = documents.to_new_document(name, email, role, password_hash, now)
        if self_registered:
            document["selfRegistered"] = True
        user = to_user(document)
        note = note_user_change(None, user, AuditAction.ROLE_SET, None, now)
        try:
            if role is Role.MEMBER:
                await self._users.insert_one(document)
            else:
                await in_transaction(
                    self._database, lambda session: self._insert(document, note, session)
                )
        except DuplicateKeyError:
            return None
        return user

    async def _insert(
        self, document: Document, note: AuditNote | None, session: AsyncClientSession
    ) -> None:
        await self._users.insert_one(document, session=session)
        await insert_notes(self._database, [note], session)

    @limited
    async def find_with_password_hash(self, email: str) -> tuple[User, str | None] | None:
        """Return the user with this address and the password hash, which may be None."""
        document = await self._users.find_one({"email": email})
        return (to_user(document), document.get("passwordHash")) if document else None

    def find_soon(self, user_id: UserId) -> asyncio.Future[User | None]:
        """Queue the read of a user. The future has the user, or None if there is none."""
        return self._read_batcher.submit_nowait(user_id)

    async def find_many(self, user_ids: Iterable[UserId]) -> dict[UserId, User]:
        """Return those of the users who exist, by id."""
        found = await self._group_batcher.submit(list(user_ids))
        return {user.id: user for user in found if user is not None}

    async def _read_batch(self, user_ids: list[UserId]) -> list[User | None]:
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in set(user_ids)]}}
        found = self._users.find(query, PUBLIC_FIELDS)
        users = {user.id: user for user in [to_user(document) async for document in found]}
        return [users.get(user_id) for user_id in user_ids]

    async def find_all(self) -> AsyncIterator[User]:
        """Yield all users, by address."""
        async for document in (
            self._users.find({"erasedAt": None}, PUBLIC_FIELDS).sort("email", 1).hint("email")
        ):
            yield to_user(document)

    @limited_listing
    async def page(self, user_filter: UserFilter, first: int, after: str | None) -> Page[User]:
        """Return the next `first` users that the filter selects, by address."""
        found = self._users.find(
            _filter_query(user_filter, after), PUBLIC_FIELDS, sort=[("email", 1)], limit=first + 1
        )
        users = [to_user(document) async for document in found]
        return Page(tuple(users[:first]), len(users) > first)

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
        audit_info = AuditInfo(AuditAction.GROUPS_SET, by, now)

        async def write(session: AsyncClientSession) -> User | None:
            query: Document = {"_id": ObjectId(user_id), "erasedAt": None}
            if role is not None:
                query["role"] = role.value
            changed = await update_user(self._database, query, update, audit_info, session)
            if changed is not None:
                await self._waitlist_groups.mark_pending([user_id], now, session)
            return changed

        changed = await self._in_transaction(write)
        if changed is not None:
            await self._waitlist_groups.sync_now([user_id], now)
        return changed

    @limited
    async def _in_transaction(
        self, write: Callable[[AsyncClientSession], Awaitable[User | None]]
    ) -> User | None:
        return await in_transaction(self._database, write)


def _filter_query(user_filter: UserFilter, after: str | None) -> Document:
    query: Document = {"erasedAt": None}
    if user_filter.text is not None:
        query |= search_query(user_filter.text)
    if user_filter.group is not None:
        query["groups"] = user_filter.group
    for name, value in (
        ("banned", user_filter.banned),
        ("withoutPassword", user_filter.without_password),
    ):
        if value is not None:
            query[name] = value or None
    if after is not None:
        query["email"] = {"$gt": after}
    return query
