"""Stores the code that was mailed to an address, and the address once the code comes back.

A user has at most one code: the next one replaces it. Only its hash is stored.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.indexes.index import RequiredIndexes
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.account_admin_writer import (
    ADDRESS_TOKENS,
    AuditInfo,
    LoginNameTaken,
    update_login_name,
)
from slotlock.infrastructure.mongo.users.user_documents import (
    EMAIL_INDEX,
    list_fields_of,
    to_user,
)


class EmailVerificationRepository:
    """Stores codes, and verifies the addresses of users."""

    def __init__(
        self,
        database: Database,
        limiter: ConcurrencyLimiter,
        required: RequiredIndexes,
        outbox: OutboxRepository,
    ) -> None:
        self.limiter = limiter
        self._database = database
        self._users = database["users"]
        self._required = required
        self._outbox = outbox

    @limited
    async def save(
        self, user: User, email: str, hash_: str, mail: OutboxEntry, now: datetime
    ) -> bool:
        """Store the code for an address, and the mail that contains it.

        Return False if the user was banned, or the address changed, in the meantime.
        """
        verification = {
            "hash": hash_,
            "until": mail.expires_at,
            "email": email,
            "dueAt": mail.due_at,
        }

        async def write(session: AsyncClientSession) -> bool:
            query = {"_id": ObjectId(user.id), "email": user.login_name, "banned": None}
            update = {"$set": {"emailVerification": verification}}
            saved = (await self._users.update_one(query, update, session=session)).matched_count
            await self._outbox.insert([mail] if saved else [], now, session)
            return bool(saved)

        return await in_transaction(self._database, write)

    @limited
    async def find_waiting(self, user: User, now: datetime) -> tuple[datetime, datetime] | None:
        """Return until when the code for the address of a user is valid, and when its mail leaves.

        None if no mail waits for its time.
        """
        query = {
            "_id": ObjectId(user.id),
            "emailVerification.email": user.login_name,
            "emailVerification.dueAt": {"$gt": now},
        }
        found = await self._users.find_one(query, {"emailVerification": 1})
        code = found["emailVerification"] if found else None
        return (code["until"], code["dueAt"]) if code else None

    @limited
    async def find(self, user_id: UserId, hash_: str, now: datetime) -> tuple[User, str] | None:
        """Return the user and the address of the code; None if it is not theirs, or expired."""
        document = await self._users.find_one(_valid_filter(user_id, hash_, now))
        return (to_user(document), document["emailVerification"]["email"]) if document else None

    @limited
    async def verify(
        self, before: User, email: str, hash_: str, mails: Sequence[OutboxEntry], now: datetime
    ) -> User | LoginNameTaken | None:
        """Verify the address of the code, once, which becomes that of the user.

        The mails about it are inserted. Return None if the code or the user changed meanwhile.
        """
        self._required.require(EMAIL_INDEX)
        fields: Document = {"verifiedEmail": email}
        ended = ["emailVerification", "selfRegistered"]
        if email != before.login_name:
            fields["email"] = email
            fields |= list_fields_of(before.name, email, before.family_name)
            ended += ADDRESS_TOKENS
        query = {
            **_valid_filter(before.id, hash_, now),
            "name": before.name,
            "familyName": before.family_name,
            "email": before.login_name,
        }
        update = {"$set": fields, "$unset": dict.fromkeys(ended, "")}
        info = AuditInfo(NoteAction.USER_EDITED, before.id, now)
        write = partial(
            update_login_name,
            self._database,
            self._outbox,
            query,
            update,
            info,
            mails,
            # The old address may be that of a stranger, who was invited.
            assigns_invitations=not before.self_registered,
        )
        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:
            return LoginNameTaken()


def _valid_filter(user_id: UserId, hash_: str, now: datetime) -> Document:
    return {
        "_id": ObjectId(user_id),
        "emailVerification.hash": hash_,
        "emailVerification.until": {"$gt": now},
    }
