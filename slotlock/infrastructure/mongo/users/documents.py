"""The shape of a user's document.

    {_id, name, email, role, createdAt, searchWords: [str], groups?: [str],
     passwordHash?, withoutPassword?: true,
     invitation?: {hash, until, replacesPassword?: true},
     schemaVersion, banned?: true, bannedAt?, bannedBy?, banReason?, calendar?: {hash, at},
     erasedAt?, adminCheckedBy?, selfRegistered?: true}

`email` is normalized and unique. `searchWords` are the words of the name and of the
address, after a mark (`search_words.py`).
Either `passwordHash` or `withoutPassword` is present. Flags are true or omitted, so that an index
finds the users with a flag (`true`) and without it (`null`) in the order of their addresses.
`selfRegistered` marks an account that somebody registered, until an organizer or operator vouches
for the user. Accounts of earlier versions lack it.
An erased user is banned, so that older processes reject them too (docs/decisions/0048).
"""

from datetime import datetime

from bson import ObjectId

from slotlock.domain.users.user import Role, User, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.schema.versions import with_schema_version
from slotlock.infrastructure.mongo.search_words import FOLDING_INDEX, to_stored_words
from slotlock.infrastructure.stored_enums import from_stored

PUBLIC_FIELDS = dict.fromkeys(
    (
        *("name", "email", "role", "createdAt", "groups", "withoutPassword"),
        *("bannedAt", "banReason", "erasedAt", "selfRegistered"),
    ),
    1,
)
PARTIAL_CALENDAR = {"partialFilterExpression": {"calendar.hash": {"$exists": True}}}
PARTIAL_BANNED = {"partialFilterExpression": {"bannedAt": {"$exists": True}}}
PARTIAL_INVITATION = {"partialFilterExpression": {"invitation.hash": {"$exists": True}}}
USER_INDEXES = indexes_of(
    "users",
    {
        "email": ([("email", 1)], {"unique": True}),
        "search_words": ([("searchWords", 1)], {}),
        "folding": FOLDING_INDEX,
        "group": ([("groups", 1), ("email", 1)], {}),
        "banned": ([("banned", 1), ("email", 1)], {}),
        "banned_at": ([("bannedAt", -1)], PARTIAL_BANNED),
        "without_password": ([("withoutPassword", 1), ("email", 1)], {}),
        "invitation": ([("invitation.hash", 1)], {"unique": True, **PARTIAL_INVITATION}),
        "calendar": ([("calendar.hash", 1)], {"unique": True, **PARTIAL_CALENDAR}),
    },
)
EMAIL_INDEX = "users.email"


def to_user(document: Document) -> User:
    """Return the user that a document describes."""
    return User(
        UserId(str(document["_id"])),
        document["name"],
        document["email"],
        # A newer version may have stored another role, which gives no rights here.
        from_stored(document["role"], Role.MEMBER),
        document["createdAt"],
        tuple(document.get("groups", ())),
        document.get("bannedAt"),
        document.get("banReason"),
        "withoutPassword" not in document,
        document.get("erasedAt"),
        "selfRegistered" in document,
    )


def to_new_document(
    name: str, email: str, role: Role, password_hash: str | None, now: datetime
) -> Document:
    """Return the document of a new user without groups."""
    password = {"passwordHash": password_hash} if password_hash else {"withoutPassword": True}
    document = {
        "_id": ObjectId(),
        "name": name,
        "email": email,
        "role": role.value,
        "createdAt": now,
        "searchWords": stored_words_of(name, email),
        **password,
    }
    return with_schema_version("users", document)


def stored_words_of(name: str, email: str) -> list[str]:
    """Return the words by which a user is found, with the mark of the folding."""
    return to_stored_words(f"{name} {email}")


def stored_words_of_user(document: Document) -> list[str]:
    """Return the words by which the user of a document is found; an erased user is not found."""
    if document.get("erasedAt"):
        return to_stored_words("")
    return stored_words_of(document["name"], document["email"])
