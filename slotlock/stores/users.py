"""People's accounts in MongoDB: adding them, finding them, and what organisers give them."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit import Happening
from slotlock.domain.listing import Page
from slotlock.domain.notes import Note, person_note
from slotlock.domain.people import PeopleFilter, Role, User, UserId
from slotlock.stores import user_documents as documents
from slotlock.stores.bans import Bans
from slotlock.stores.batches import Batches
from slotlock.stores.calendar_addresses import CalendarAddresses
from slotlock.stores.gate import Gate, gated, listed
from slotlock.stores.invitations import Invitations
from slotlock.stores.mongo import PEOPLE_GATE, PEOPLE_LISTS_GATE, Database, Document
from slotlock.stores.notes import keep, together
from slotlock.stores.password_changes import PasswordChanges
from slotlock.stores.people_changes import Noting, change_person
from slotlock.stores.people_imports import PeopleImports
from slotlock.stores.sessions import give_role
from slotlock.stores.user_documents import SHOWN, user_of
from slotlock.stores.waiting_groups import WaitingGroups

MAX_SEARCH_WORDS = 5
LARGEST_BACKFILL = 1_000


class Users:
    """The people who have an account."""

    def __init__(self, database: Database) -> None:
        self.gate = Gate(PEOPLE_GATE)
        self.lists = Gate(PEOPLE_LISTS_GATE)
        self._database = database
        self._users = database["users"]
        self._reads = Batches(self._read)
        self.waiting = WaitingGroups(database)
        self.imports = PeopleImports(database, self.lists, self.waiting)
        self.invitations = Invitations(database, self.gate, self.lists)
        self.bans = Bans(database, self.gate)
        self.calendars = CalendarAddresses(database, self.gate)
        self.password_changes = PasswordChanges(database, self.gate)

    async def prepare(self) -> None:
        """Create the indexes that are missing, and the words of people from before there were."""
        for name, (keys, options) in documents.INDEXES.items():
            await self._users.create_index(keys, name=name, **options)
        await self.waiting.prepare()
        while await self._give_words():
            pass

    async def _give_words(self) -> bool:
        found = self._users.find({"words": None}, {"name": 1, "email": 1}, limit=LARGEST_BACKFILL)
        updates = [
            UpdateOne(
                {"_id": person["_id"], "name": person["name"], "words": None},
                {"$set": {"words": documents.words_of(person["name"], person["email"])}},
            )
            async for person in found
        ]
        if updates:
            await self._users.bulk_write(updates, ordered=False)
        return bool(updates)

    @gated
    async def add(
        self, name: str, email: str, role: Role, password_hash: str, now: datetime
    ) -> User | None:
        """The new person, or None when the address is taken. More than a member is noted."""
        document = documents.new_person(name, email, role, password_hash, now)
        user = user_of(document)
        note = person_note(None, user, Happening.ROLE_SET, None, now)
        try:
            if role is Role.MEMBER:
                await self._users.insert_one(document)
            else:
                await together(self._database, lambda session: self._add(document, note, session))
        except DuplicateKeyError:
            return None
        return user

    async def _add(
        self, document: Document, note: Note | None, session: AsyncClientSession
    ) -> None:
        await self._users.insert_one(document, session=session)
        await keep(self._database, [note], session)

    @gated
    async def with_password(self, email: str) -> tuple[User, str | None] | None:
        """The person with this address and their password's hash, None if they never set one."""
        document = await self._users.find_one({"email": email})
        return (user_of(document), document.get("passwordHash")) if document else None

    async def by_ids(self, user_ids: Iterable[UserId]) -> dict[UserId, User]:
        """Those of the people who exist."""
        wanted = list(user_ids)
        found = await asyncio.gather(*map(self._reads.do, wanted))
        return {user.id: user for user in found if user is not None}

    async def _read(self, user_ids: list[UserId]) -> list[User | None]:
        query = {"_id": {"$in": [ObjectId(user_id) for user_id in set(user_ids)]}}
        found = self._users.find(query, SHOWN)
        users = {user.id: user for user in [user_of(document) async for document in found]}
        return [users.get(user_id) for user_id in user_ids]

    async def all(self) -> AsyncIterator[User]:
        """Everyone, by address."""
        async for document in self._users.find({}, SHOWN).sort("email", 1).hint("email"):
            yield user_of(document)

    @listed
    async def page(self, wanted: PeopleFilter, first: int, after: str | None) -> Page[User]:
        """The next `first` of the people that somebody looks for, by address."""
        found = self._users.find(
            _matching(wanted, after), SHOWN, sort=[("email", 1)], limit=first + 1
        )
        users = [user_of(document) async for document in found]
        return Page(tuple(users[:first]), len(users) > first)

    async def set_role(
        self, email: str, role: Role, by: UserId | None, now: datetime
    ) -> User | None:
        """The person in their new role, or None when nobody has this address.

        Their open sessions know it by the same write. An invitation that was made for the old role
        ends with it.
        """
        update = {"$set": {"role": role.value}, "$unset": {"invitation": ""}}
        noting = Noting(Happening.ROLE_SET, by, now)

        async def write(session: AsyncClientSession) -> User | None:
            query = {"email": email}
            changed = await change_person(self._database, query, update, noting, session)
            if changed is not None:
                await give_role(self._database, changed.id, role, session)
            return changed

        return await self._together(write)

    async def set_groups(
        self, user_id: UserId, groups: Sequence[str], by: UserId | None, now: datetime
    ) -> User | None:
        """The person with their new groups, or None when there is no such person.

        Where they wait, they wait as one of the new groups from then on.
        """
        update = {"$set": {"groups": list(groups)}}
        noting = Noting(Happening.GROUPS_SET, by, now)

        async def write(session: AsyncClientSession) -> User | None:
            query = {"_id": ObjectId(user_id)}
            changed = await change_person(self._database, query, update, noting, session)
            if changed is not None:
                await self.waiting.mark([user_id], now, session)
            return changed

        changed = await self._together(write)
        if changed is not None:
            await self.waiting.soon([user_id], now)
        return changed

    @gated
    async def _together(
        self, write: Callable[[AsyncClientSession], Awaitable[User | None]]
    ) -> User | None:
        return await together(self._database, write)


def _matching(wanted: PeopleFilter, after: str | None) -> Document:
    query: Document = {}
    if wanted.text is not None:
        # Anchored prefixes of folded words, as in the list of slots.
        begun = documents.searched(wanted.text)[:MAX_SEARCH_WORDS]
        query["words"] = {"$all": [re.compile(f"^{word}") for word in begun]}
    if wanted.group is not None:
        query["groups"] = wanted.group
    for name, value in (("banned", wanted.banned), ("withoutPassword", wanted.without_password)):
        if value is not None:
            query[name] = value or None
    if after is not None:
        query["email"] = {"$gt": after}
    return query
