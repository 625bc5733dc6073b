"""Reads everything that is stored about one user, without secrets, record by record."""

from collections.abc import AsyncIterator, Callable

from bson import ObjectId

from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document

# They would let a reader act as the user, or try passwords.
ACCOUNT_SECRETS = {"passwordHash": 0, "invitation.hash": 0, "calendar.hash": 0, "searchWords": 0}
SESSION_FIELDS = {"_id": 0, "createdAt": 1, "expiresAt": 1, "userAgent": 1, "role": 1}
SLOT_FACTS = {"title": 1, "start": 1, "end": 1, "location": 1}

Section = tuple[str, Callable[[], AsyncIterator[Document]]]


class PersonalDataQueries:
    """Reads the personal data of users; each section with one cursor."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sections(self, user_id: UserId) -> list[Section]:
        """Return the sections of the export in order, each with a function that reads it."""
        user = ObjectId(user_id)
        by_user = {"user": user}
        return [
            ("account", lambda: self._find("users", {"_id": user}, ACCOUNT_SECRETS)),
            ("sessions", lambda: self._find("sessions", by_user, SESSION_FIELDS)),
            ("bookings", lambda: self._own_items("bookings", user)),
            ("endedBookings", lambda: self._find("ended_bookings", by_user)),
            ("waitlistEntries", lambda: self._own_items("waitlist", user)),
            ("endedWaitlistEntries", lambda: self._find("ended_waitlist_entries", by_user)),
            ("teams", lambda: self._teams(user)),
            ("teamInvitations", lambda: self._team_invitations(user)),
            ("auditEntries", lambda: self._audit_entries(user)),
        ]

    async def _find(
        self, collection: str, query: Document, projection: Document | None = None
    ) -> AsyncIterator[Document]:
        async for document in self._database[collection].find(query, projection):
            yield document

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
        email = account["email"] if account else ""
        async for team in self._database["teams"].find({"invitations.email": email}):
            for each in team["invitations"]:
                if each["email"] == email:
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
