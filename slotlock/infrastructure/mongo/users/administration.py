"""Changes of accounts by organizers, admins and operators, each with its audit note."""

from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.notes import AuditNote, note_user_change
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.administration import LastAdmin
from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.audit.notes import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.account_updates import AuditInfo, update_user
from slotlock.infrastructure.mongo.users.documents import (
    EMAIL_INDEX,
    stored_words_of,
    to_new_document,
    to_user,
)
from slotlock.infrastructure.mongo.users.sessions import end_all_sessions, set_session_roles


@value_object
class InvitedUser:
    """An account to create without a password, with the hash of its invitation's token."""

    name: str
    email: str
    role: Role
    groups: tuple[str, ...]
    invitation_hash: str
    invitation_until: datetime


@value_object
class AddressTaken:
    """Another account has the address."""


class AccountAdministration:
    """Creates, edits and resets accounts on behalf of others."""

    def __init__(
        self, database: Database, limiter: ConcurrencyLimiter, required: RequiredIndexes
    ) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]
        self._required = required

    @limited
    async def insert(self, new: InvitedUser, by: UserId, now: datetime) -> User | None:
        """Insert an invited user without a password; None if the address is taken."""
        self._required.require(EMAIL_INDEX)
        document = {
            **to_new_document(new.name, new.email, new.role, None, now),
            **({"groups": list(new.groups)} if new.groups else {}),
            "invitation": {"hash": new.invitation_hash, "until": new.invitation_until},
        }
        user = to_user(document)
        note = note_user_change(None, user, AuditAction.USER_CREATED, by, now)

        async def write(session: AsyncClientSession) -> None:
            await self._users.insert_one(document, session=session)
            await insert_notes(self._database, [note], session)

        try:
            await in_transaction(self._database, write)
        except DuplicateKeyError:
            return None
        return user

    @limited
    async def update(
        self, expected: User, name: str, email: str, by: UserId, now: datetime
    ) -> User | AddressTaken | None:
        """Change the name and the address. Return None if the user changed meanwhile.

        A new address ends the invitation or reset token that was sent to the old one.
        """
        self._required.require(EMAIL_INDEX)
        query: Document = {
            "_id": ObjectId(expected.id),
            "role": expected.role.value,
            "name": expected.name,
            "email": expected.email,
            "erasedAt": None,
        }
        words = stored_words_of(name, email)
        update: Document = {"$set": {"name": name, "email": email, "searchWords": words}}
        if email != expected.email:
            update["$unset"] = {"invitation": ""}
        info = AuditInfo(AuditAction.USER_EDITED, by, now)
        try:
            return await in_transaction(
                self._database,
                lambda session: update_user(self._database, query, update, info, session),
            )
        except DuplicateKeyError:
            return AddressTaken()

    @limited
    async def set_role(
        self, user_id: UserId, role: Role, by: UserId | None, now: datetime
    ) -> User | LastAdmin | None:
        """Set a user's role, also in their open sessions. Return None without a user.

        It ends an open invitation, which was made for the old role. An admin knows the user.
        """
        update = {
            "$set": {"role": role.value},
            "$unset": {"invitation": "", "selfRegistered": ""},
        }
        info = AuditInfo(AuditAction.ROLE_SET, by, now)

        async def write(session: AsyncClientSession) -> User | LastAdmin | None:
            query: Document = {"_id": ObjectId(user_id), "erasedAt": None}
            is_admin = {**query, "role": Role.ADMIN.value}
            was_admin = await self._users.find_one(is_admin, {"_id": 1}, session=session)
            changed = await update_user(self._database, query, update, info, session)
            if changed is None:
                return None
            loses_admin = was_admin and role is not Role.ADMIN
            if loses_admin and not await has_other_admin(self._database, user_id, session):
                await session.abort_transaction()
                return LastAdmin(user_id)
            await set_session_roles(self._database, user_id, role, session)
            return changed

        return await in_transaction(self._database, write)

    @limited
    async def end_sessions(self, user_id: UserId, by: UserId, now: datetime) -> int:
        """End all sessions of a user. Return how many ended."""
        note = AuditNote(now, by, AuditAction.SESSIONS_ENDED, (), user_ids=(user_id,))

        async def write(session: AsyncClientSession) -> int:
            ended = await end_all_sessions(self._database, user_id, session)
            await insert_notes(self._database, [note] if ended else [], session)
            return ended

        return await in_transaction(self._database, write)

    @limited
    async def replace_password(self, user_id: UserId, password_hash: str, now: datetime) -> bool:
        """Set a password and end all sessions. Return False if the user was erased meanwhile."""
        note = AuditNote(now, None, AuditAction.PASSWORD_SET, (), user_ids=(user_id,))
        update = {
            "$set": {"passwordHash": password_hash},
            "$unset": {"withoutPassword": "", "invitation": "", "selfRegistered": ""},
        }

        async def write(session: AsyncClientSession) -> bool:
            query = {"_id": ObjectId(user_id), "erasedAt": None}
            if not (await self._users.update_one(query, update, session=session)).matched_count:
                return False
            await end_all_sessions(self._database, user_id, session)
            await insert_notes(self._database, [note], session)
            return True

        return await in_transaction(self._database, write)


async def has_other_admin(database: Database, user_id: UserId, session: AsyncClientSession) -> bool:
    """Return whether there is another admin, who stays one until this transaction commits.

    The write makes concurrent transactions conflict that each take the role from the last other
    admin. A read would let both commit.
    """
    other: Document = {
        "_id": {"$ne": ObjectId(user_id)},
        "role": Role.ADMIN.value,
        "banned": None,
    }
    touch = {"$set": {"adminCheckedBy": ObjectId()}}
    return bool((await database["users"].update_one(other, touch, session=session)).matched_count)
