"""The shape of a person's document.

    {_id, name, email, role, createdAt, words: [str], groups?: [str],
     passwordHash?, withoutPassword?: true, invitation?: {hash, until},
     banned?: true, bannedAt?, bannedBy?, banReason?, calendar?: {hash, at}}

`email` is normalised and unique; `words` are those of name and address, as they are searched for.
Either `passwordHash` or `withoutPassword` is there. What is false is left out, so that an index
finds both those who are something (`true`) and those who are not (`null`), in order of address.
"""

from datetime import datetime

from bson import ObjectId

from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.search_words import search_words

PUBLIC_FIELDS = dict.fromkeys(
    ("name", "email", "role", "createdAt", "groups", "withoutPassword", "bannedAt", "banReason"), 1
)
PARTIAL_CALENDAR = {"partialFilterExpression": {"calendar.hash": {"$exists": True}}}
PARTIAL_BANNED = {"partialFilterExpression": {"bannedAt": {"$exists": True}}}
PARTIAL_INVITATION = {"partialFilterExpression": {"invitation.hash": {"$exists": True}}}
INDEXES: dict[str, tuple[list[tuple[str, int]], Document]] = {
    "email": ([("email", 1)], {"unique": True}),
    "search_words": ([("searchWords", 1)], {}),
    "group": ([("groups", 1), ("email", 1)], {}),
    "banned": ([("banned", 1), ("email", 1)], {}),
    "banned_at": ([("bannedAt", -1)], PARTIAL_BANNED),
    "without_password": ([("withoutPassword", 1), ("email", 1)], {}),
    "invitation": ([("invitation.hash", 1)], {"unique": True, **PARTIAL_INVITATION}),
    "calendar": ([("calendar.hash", 1)], {"unique": True, **PARTIAL_CALENDAR}),
}


def to_user(document: Document) -> User:
    """The person that a document describes."""
    return User(
        UserId(str(document["_id"])),
        document["name"],
        document["email"],
        Role(document["role"]),
        document["createdAt"],
        tuple(document.get("groups", ())),
        document.get("bannedAt"),
        document.get("banReason"),
        "withoutPassword" not in document,
    )


def to_new_document(
    name: str, email: str, role: Role, password_hash: str | None, now: datetime
) -> Document:
    """The document of somebody new, in no group."""
    password = {"passwordHash": password_hash} if password_hash else {"withoutPassword": True}
    return {
        "_id": ObjectId(),
        "name": name,
        "email": email,
        "role": role.value,
        "createdAt": now,
        "searchWords": search_words_of(name, email),
        **password,
    }


def search_words_of(name: str, email: str) -> list[str]:
    """The words that a person is found by."""
    return search_words(f"{name} {email}")
