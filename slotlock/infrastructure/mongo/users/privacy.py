"""Reads all that is stored about one user, and erases accounts.

    erasures  {_id: user, email, formerLoginNames?: [str], by?, at, checkedAt}

The transaction that erases an account replaces its document and inserts the record. The rest is
done afterwards, and again until no request that began before the erasure can still be written. Then
the record is deleted, and with it the last copy of the addresses.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import USER_FIELDS, AuditNote
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.account_admin_rules import ERASED_NAME, LastAdmin
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter, limited
from slotlock.infrastructure.mongo.document_parts import with_schema_version
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.transactions import in_transaction
from slotlock.infrastructure.mongo.users.account_admin_writer import has_other_admin
from slotlock.infrastructure.mongo.users.sessions import end_all_sessions, user_sessions_query
from slotlock.infrastructure.mongo.users.user_documents import ERASED_LIST_FIELDS, to_user

ERASURE_INDEXES = indexes_of("erasures", {"checked_at": ([("checkedAt", 1)], {})})
# The fields of audit notes that may contain personal data.
PERSONAL_FIELDS = sorted({*USER_FIELDS, "subject"} - {"role", "banned"})
# Written by requests that began before the erasure.
LATE_FIELDS = dict.fromkeys(
    (
        *("passwordHash", "groups", "invitation", "calendar", "guardians"),
        *("passwordReset", "emailVerification", "verifiedEmail", "refusedTopics", "identities"),
    ),
    "",
)
# They would let a reader act as the user, or try passwords.
ACCOUNT_SECRETS = {
    **dict.fromkeys(("passwordHash", "searchWords", "sortName"), 0),
    **dict.fromkeys(
        (
            *("invitation.hash", "calendar.hash"),
            *("passwordReset.hash", "emailVerification.hash"),
        ),
        0,
    ),
}
SESSION_FIELDS = {"_id": 0, "createdAt": 1, "expiresAt": 1, "userAgent": 1, "role": 1}
MAIL_FIELDS = dict.fromkeys(("kind", "at", "slot", "state", "doneAt", "dependents"), 1)
WISH_FIELDS = dict.fromkeys(("draw", "campaign", "slots", "at", "salt"), 1)
ENTRY_FIELDS = dict.fromkeys(("draw", "salt", "leaf", "wishes"), 1)
SLOT_FACTS = {"title": 1, "start": 1, "end": 1, "location": 1}

Section = tuple[str, Callable[[], AsyncIterator[Document]]]


@value_object
class Erasure:
    """The erasure of a user, who had these login names; `by` is None for the command line."""

    user_id: UserId
    login_name: str
    by: UserId | None
    at: datetime
    former_login_names: tuple[str, ...] = ()


class ErasureRepository:
    """Erases accounts and what other collections store about them."""

    def __init__(self, database: Database) -> None:
        self.limiter = ConcurrencyLimiter(1)
        self._database = database
        self._users = database["users"]
        self._slots = database["slots"]
        self._sessions = database["sessions"]
        self._notes = database["audit_notes"]
        self._erasures = database["erasures"]

    @limited
    async def erase_account(
        self, user_id: UserId, by: UserId | None, now: datetime
    ) -> Erasure | LastAdmin | None:
        """Replace an account by a placeholder and end its sessions. Return None without a user.

        Erasing again returns the first erasure as long as it is not finished.
        """

        async def write(session: AsyncClientSession) -> Erasure | LastAdmin | None:
            query: Document = {"_id": ObjectId(user_id), "erasedAt": None}
            user = await self._users.find_one(query, session=session)
            if user is None:
                return None
            if user["role"] == Role.ADMIN.value and not await has_other_admin(
                self._database, user_id, session
            ):
                await session.abort_transaction()
                return LastAdmin(user_id)
            placeholder = _to_placeholder(user, by, now)
            await self._users.replace_one(query, placeholder, session=session)
            await end_all_sessions(self._database, user_id, session)
            former_names = tuple(user.get("formerLoginNames", ()))
            erasure = Erasure(user_id, user["email"], by, now, former_names)
            await self._erasures.insert_one(_to_document(erasure), session=session)
            note = AuditNote(now, by, NoteAction.USER_ERASED, (), user_ids=(user_id,))
            await insert_notes(self._database, [note], session)
            return erasure

        erased = await in_transaction(self._database, write)
        return await self._find(user_id) if erased is None else erased

    async def _find(self, user_id: UserId) -> Erasure | None:
        found = await self._erasures.find_one({"_id": ObjectId(user_id)})
        return _to_erasure(found) if found else None

    @limited
    async def find_unfinished(self, limit: int) -> list[Erasure]:
        """Return erasures that may have something left to do, the longest unchecked first."""
        found = self._erasures.find(sort=[("checkedAt", 1)], limit=limit)
        return [_to_erasure(document) async for document in found]

    @limited
    async def set_checked(self, erasure: Erasure, now: datetime) -> None:
        """Record that everything that was found has been erased now."""
        query = {"_id": ObjectId(erasure.user_id)}
        await self._erasures.update_one(query, {"$set": {"checkedAt": now}})

    @limited
    async def delete(self, erasure: Erasure) -> None:
        """Delete the record of a finished erasure, which contains the address."""
        await self._erasures.delete_one({"_id": ObjectId(erasure.user_id)})

    @limited
    async def find_cancellable(
        self, user_id: UserId, now: datetime
    ) -> Sequence[tuple[SlotId, BookingId]]:
        """Return the user's bookings in slots that have not started, and their holds."""
        user = ObjectId(user_id)
        query: Document = {
            "bookings.user": user,
            "status": {"$ne": SlotStatus.CANCELLED.value},
            "$or": [
                {"start": {"$gt": now}},
                {"bookings": {"$elemMatch": {"user": user, "heldUntil": {"$gt": now}}}},
            ],
        }
        own = {"$filter": {"input": "$bookings", "cond": {"$eq": ["$$this.user", user]}}}
        found = self._slots.find(query, {"own": own})
        return [
            (SlotId(str(document["_id"])), BookingId(str(booking["id"])))
            async for document in found
            for booking in document["own"]
        ]

    @limited
    async def erase_details(self, user_id: UserId) -> None:
        """Erase what requests that began earlier wrote, and the values in the audit notes."""
        user = ObjectId(user_id)
        erased: Document = {"_id": user, "erasedAt": {"$exists": True}}
        await self._users.update_one(erased, {"$unset": LATE_FIELDS})
        await self._sessions.delete_many(user_sessions_query(user_id))
        # Messages of webhooks have ids only, and say that the user was erased.
        await self._send_alone(user)
        mails: Document = {"$or": [{"user": user, "channel": "mail"}, {"dependents": [user]}]}
        await self._database["outbox"].delete_many(mails)
        with_siblings = {"dependents": user}
        await self._database["outbox"].update_many(with_siblings, {"$pull": with_siblings})
        no_values = {"$set": {"edits.$[edit].before": None, "edits.$[edit].after": None}}
        personal: Document = {"edit.field": {"$in": PERSONAL_FIELDS}}
        for query, edit in (
            ({"users": [user]}, personal),
            ({"users": user}, {**personal, "edit.user": user}),
        ):
            await self._notes.update_many(query, no_values, array_filters=[edit])

    async def _send_alone(self, dependent: ObjectId) -> None:
        """Let what guardians get in one mail with what is about a dependent wait on its own."""
        outbox, exists = self._database["outbox"], {"$exists": True}
        leads = {"dependents": [dependent], "group": exists, "dueAt": exists}
        async for lead in outbox.find(leads, {"group": 1, "dueAt": 1}):
            again = {"state": OutboxState.QUEUED.value, "attempts": 0, "dueAt": lead["dueAt"]}
            followers = {"group": lead["group"], "lead": lead["_id"]}
            await outbox.update_many(followers, {"$set": again, "$unset": {"lead": ""}})


def _to_placeholder(user: Document, by: UserId | None, now: datetime) -> Document:
    """Return the document that replaces a user's. Nothing but its id and age is left."""
    placeholder = {
        "_id": user["_id"],
        "name": ERASED_NAME,
        "email": f"{user['_id']}@erased.invalid",
        "role": Role.MEMBER.value,
        "createdAt": user["createdAt"],
        **ERASED_LIST_FIELDS,
        "withoutPassword": True,
        "banned": True,
        "bannedAt": now,
        "bannedBy": ObjectId(by) if by else user["_id"],
        "erasedAt": now,
    }
    return with_schema_version("users", placeholder)


def _to_document(erasure: Erasure) -> Document:
    return {
        "_id": ObjectId(erasure.user_id),
        "email": erasure.login_name,
        "formerLoginNames": list(erasure.former_login_names),
        **({"by": ObjectId(erasure.by)} if erasure.by else {}),
        "at": erasure.at,
        "checkedAt": erasure.at,
    }


def _to_erasure(document: Document) -> Erasure:
    by = UserId(str(document["by"])) if "by" in document else None
    user_id, former_names = UserId(str(document["_id"])), document.get("formerLoginNames", ())
    return Erasure(user_id, document["email"], by, document["at"], tuple(former_names))


class PersonalDataQueries:
    """Reads the personal data of users; each section with one cursor."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sections(self, user_id: UserId, *, for_guardian: bool = False) -> list[Section]:
        """Return the sections of the export in order, each with a function that reads it.

        A guardian does not see to which addresses mails about a dependent went.
        """
        user = ObjectId(user_id)
        by_user = {"user": user}
        return [
            ("account", lambda: self._account(user)),
            ("sessions", lambda: self._find("sessions", by_user, SESSION_FIELDS)),
            ("bookings", lambda: self._own_items("bookings", user)),
            ("endedBookings", lambda: self._find("ended_bookings", by_user)),
            ("waitlistEntries", lambda: self._own_items("waitlist", user)),
            ("endedWaitlistEntries", lambda: self._find("ended_waitlist_entries", by_user)),
            ("teams", lambda: self._teams(user)),
            ("teamInvitations", lambda: self._team_invitations(user)),
            ("wishes", lambda: self._find("draw_wishes", {"users": user}, WISH_FIELDS)),
            ("drawEntries", lambda: self._find("draw_entries", {"users": user}, ENTRY_FIELDS)),
            ("mails", lambda: self._mails(user, for_guardian=for_guardian)),
            ("auditEntries", lambda: self._audit_entries(user)),
        ]

    async def _find(
        self, collection: str, query: Document, projection: Document | None = None
    ) -> AsyncIterator[Document]:
        async for document in self._database[collection].find(query, projection):
            yield document

    async def _account(self, user: ObjectId) -> AsyncIterator[Document]:
        async for document in self._find("users", {"_id": user}, ACCOUNT_SECRETS):
            account = to_user(document)
            del document["email"]
            names = {"email": account.email, "username": account.username}
            yield {
                **document,
                **{name: value for name, value in names.items() if value},
                **await self._guardians(document.get("guardians", ())),
            }

    async def _guardians(self, guardians: Sequence[ObjectId]) -> Document:
        """Return the field of the guardians, by name and without their addresses."""
        named = self._find("users", {"_id": {"$in": list(guardians)}}, {"name": 1})
        shown = [{"user": each["_id"], "name": each["name"]} async for each in named]
        return {"guardians": shown} if shown else {}

    async def _mails(self, user: ObjectId, *, for_guardian: bool) -> AsyncIterator[Document]:
        """Yield the mails to the user, and those to guardians about the user."""
        own = MAIL_FIELDS if for_guardian else {**MAIL_FIELDS, "recipient": 1}
        async for mail in self._find("outbox", {"user": user, "channel": "mail"}, own):
            yield mail
        about = {**MAIL_FIELDS, "dependents": {"$elemMatch": {"$eq": user}}}  # and no siblings
        async for mail in self._find("outbox", {"dependents": user}, about):
            yield mail

    async def _own_items(self, name: str, user: ObjectId) -> AsyncIterator[Document]:
        """Yield the user's bookings or waitlist entries, each with the facts of its slot."""
        own = {"$filter": {"input": f"${name}", "cond": {"$eq": ["$$this.user", user]}}}
        found = self._database["slots"].find({f"{name}.user": user}, {**SLOT_FACTS, "own": own})
        async for slot in found:
            items = slot.pop("own")
            for item in items:
                yield {**item, "slot": slot}

    async def _teams(self, user: ObjectId) -> AsyncIterator[Document]:
        async for team in self._database["teams"].find({"members.user": user}):
            (own,) = [member for member in team["members"] if member["user"] == user]
            yield {"id": team["_id"], "name": team["name"], "since": own["since"]}

    async def _team_invitations(self, user: ObjectId) -> AsyncIterator[Document]:
        account = await self._database["users"].find_one({"_id": user}, {"email": 1})
        login_name = account["email"] if account else ""
        query: Document = {"$or": [{"invitations.user": user}, {"invitations.email": login_name}]}
        async for team in self._database["teams"].find(query):
            for each in team["invitations"]:
                invited = each.get("user")
                if invited == user or (invited is None and each["email"] == login_name):
                    yield {"team": team["_id"], "name": team["name"], "at": each["at"]}

    async def _audit_entries(self, user: ObjectId) -> AsyncIterator[Document]:
        """Yield entries about the user with their edits, and those by the user without."""
        async for note in self._database["audit_notes"].find({"users": user}):
            is_alone = note["users"] == [user]
            edits = [e for e in note["edits"] if is_alone or e.get("user") == user]
            yield {"at": note["at"], "by": note["by"], "action": note["action"], "edits": edits}
        done: Document = {"by": user, "users": {"$ne": user}}
        fields = dict.fromkeys(("at", "by", "action", "slot", "campaign"), 1)
        async for note in self._find("audit_notes", done, fields):
            yield note
