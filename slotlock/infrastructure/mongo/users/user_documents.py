"""The shape of a user's document.

    {_id, name, email, role, createdAt, searchWords: [str], sortName, groups?: [str],
     passwordHash?, withoutPassword?: true,
     invitation?: {hash, until, replacesPassword?: true, mailedAt?, email?},
     passwordReset?: {hash, until, email}, emailVerification?: {hash, until, email, dueAt?},
     verifiedEmail?, schemaVersion, banned?: true, bannedAt?, bannedBy?, banReason?,
     calendar?: {hash, at}, erasedAt?, adminCheckedBy?, selfRegistered?: true, claimed?: true,
     synced?: true, locale?, undeliverable?: {email, at}, refusedTopics?: [str],
     identities?: [{key, email?, at?, linked?: true}], formerLoginNames?: [str], familyName?,
     phone?, guardians?: [id], guardianCheckedBy?}

`email` is the normalized login name, and unique: an email address, or a user name, which has no @
(docs/decisions/0018). `searchWords` are the words of the name and of the
login name, after a mark (`search_words.py`). `sortName` orders lists: by family name where a file
of users gave one, and then by login name. It is written with the words, whose mark tells its age.
Either `passwordHash` or `withoutPassword` is present. Flags are true or omitted, so that an index
finds the users with a flag (`true`) and without it (`null`) in the order of their addresses.
`selfRegistered` marks an account that somebody registered, until somebody vouches for the user,
claims the account or verifies the address.
`claimed` marks one that an admin claimed: somebody chose its name for a stranger.
`synced` marks an account that a file of all users named. When such a file no longer does, a sync
may ban the user and remove the mark; `bannedBy` is then the user, as no organizer did it.
`undeliverable` is the address that its mail server rejected.
`passwordReset`, `emailVerification`, and an `invitation` with an address, are what only a mail to
it has. An address is verified while
`verifiedEmail` is the same, whatever changed it.
`identities` are those at providers: `key` is the issuer, a blank and the subject, `email` the last
address that the provider gave, and `at` when the user first signed in with it: an import
names one before that. `linked` marks one that a session added to the account.
`formerLoginNames` are those before the present one that a user proved or an organizer vouched for,
so that an erasure finds what still names them.
`familyName` is the last name that a file of users or an organizer gave.
`guardians` are the users who act for this one, at most two; the login name of such a user may be a
made one, which has a blank, so that nobody can enter it.
An erased user is banned, so that every check rejects them (docs/decisions/0048).
"""

import re
import secrets
import string
from collections.abc import Sequence
from datetime import datetime

from bson import ObjectId
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.domain.users.identity import Identity, LinkedIdentity
from slotlock.domain.users.user import MailTopic, Role, User, UserId, to_sort_name
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.document_parts import with_schema_version
from slotlock.infrastructure.mongo.indexes.index import indexes_of
from slotlock.infrastructure.mongo.search_words import FOLDING_INDEX, to_stored_words
from slotlock.infrastructure.stored_enums import from_stored

PUBLIC_FIELDS = dict.fromkeys(
    (
        *("name", "email", "role", "createdAt", "groups", "withoutPassword"),
        *("bannedAt", "banReason", "erasedAt", "selfRegistered", "locale", "undeliverable"),
        *("verifiedEmail", "refusedTopics", "identities.at", "claimed", "familyName", "phone"),
        "guardians",
    ),
    1,
)
# Matches accounts without a password and without an identity that was used.
NOT_SIGNED_IN: Document = {
    "withoutPassword": True,
    "identities": {"$not": {"$elemMatch": {"at": {"$ne": None}}}},
}
# Matches accounts with which nobody signs in, and those of them whose guardians do instead.
MADE_LOGIN_NAME: Document = {"email": {"$regex": " "}}
WITH_GUARDIANS_ONLY: Document = {**MADE_LOGIN_NAME, "guardians": {"$exists": True}}
PARTIAL_CALENDAR = {"partialFilterExpression": {"calendar.hash": {"$exists": True}}}
PARTIAL_BANNED = {"partialFilterExpression": {"bannedAt": {"$exists": True}}}
PARTIAL_SYNCED = {"partialFilterExpression": {"synced": True}}
PARTIAL_SELF_REGISTERED = {"partialFilterExpression": {"selfRegistered": True}}
PARTIAL_INVITATION = {"partialFilterExpression": {"invitation.hash": {"$exists": True}}}
PARTIAL_RESET = {"partialFilterExpression": {"passwordReset.hash": {"$exists": True}}}
PARTIAL_UNDELIVERABLE = {"partialFilterExpression": {"undeliverable.at": {"$exists": True}}}
PARTIAL_IDENTITY = {"partialFilterExpression": {"identities.key": {"$exists": True}}}
PARTIAL_GUARDIANS = {"partialFilterExpression": {"guardians": {"$exists": True}}}
USER_INDEXES = indexes_of(
    "users",
    {
        "email": ([("email", 1)], {"unique": True}),  # the login name, also of those without mail
        "search_words": ([("searchWords", 1)], {}),
        "folding": FOLDING_INDEX,
        "sort_name": ([("sortName", 1)], {}),
        "group": ([("groups", 1), ("email", 1)], {}),
        "group_by_name": ([("groups", 1), ("sortName", 1)], {}),
        "banned": ([("banned", 1), ("email", 1)], {}),
        "banned_by_name": ([("banned", 1), ("sortName", 1)], {}),
        "banned_at": ([("bannedAt", -1)], PARTIAL_BANNED),
        "synced": ([("synced", 1)], PARTIAL_SYNCED),
        "registered_by_name": ([("selfRegistered", 1), ("sortName", 1)], PARTIAL_SELF_REGISTERED),
        "without_password": ([("withoutPassword", 1), ("email", 1)], {}),
        "passwordless_by_name": ([("withoutPassword", 1), ("sortName", 1)], {}),
        "invitation": ([("invitation.hash", 1)], {"unique": True, **PARTIAL_INVITATION}),
        "password_reset": ([("passwordReset.hash", 1)], {"unique": True, **PARTIAL_RESET}),
        "undeliverable": ([("undeliverable.at", 1)], PARTIAL_UNDELIVERABLE),
        "calendar": ([("calendar.hash", 1)], {"unique": True, **PARTIAL_CALENDAR}),
        "identity": ([("identities.key", 1)], {"unique": True, **PARTIAL_IDENTITY}),
        "guardian": ([("guardians", 1), ("sortName", 1)], PARTIAL_GUARDIANS),
    },
)
ERASED_LIST_FIELDS: Document = {"searchWords": to_stored_words(""), "sortName": ""}
EMAIL_INDEX, IDENTITY_INDEX = "users.email", "users.identity"


def in_groups(groups: str | None) -> Document:
    """Return the condition for users of one of these groups, as `5a, 5b`; None for all users."""
    return {} if groups is None else {"groups": {"$in": groups.split(", ")}}


async def in_families_of(users: AsyncCollection[Document], members: Document) -> Document:
    """Return the condition for these users and their guardians; {} for all users."""
    if not members:
        return members
    guardians = await users.distinct("guardians", {**members, "guardians": {"$ne": None}})
    return {"$or": [members, {"_id": {"$in": guardians}}]} if guardians else members


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
        document.get("locale"),
        _undeliverable_since(document),
        document.get("verifiedEmail") == document["email"],
        _to_topics(refused) if (refused := document.get("refusedTopics")) else frozenset(),
        any(each.get("at") for each in document.get("identities", ())),
        "claimed" in document,
        document.get("familyName"),
        document.get("phone"),
        tuple(UserId(str(each)) for each in document.get("guardians", ())),
    )


def new_login_name() -> str:
    """Return a login name for a user who has none: its blank keeps everybody from entering it."""
    return "child " + "".join(secrets.choice(string.ascii_lowercase) for _ in range(12))


def guardians_field(guardians: Sequence[UserId]) -> Document:
    """Return the field of the guardians of a user, if there are any."""
    return {"guardians": [ObjectId(each) for each in guardians]} if guardians else {}


def to_linked_identities(document: Document) -> tuple[LinkedIdentity, ...]:
    """Return the identities of the user that a document describes."""
    return tuple(
        LinkedIdentity(Identity.of_key(each["key"]), each.get("email"), each.get("at"))
        for each in document.get("identities", ())
    )


def keys_of_issuer(issuer: str) -> re.Pattern[str]:
    """Return what matches the keys of all identities of an issuer."""
    return re.compile("^" + re.escape(f"{issuer} "))


def _to_topics(stored: Sequence[str]) -> frozenset[MailTopic]:
    # A topic of a newer version refuses no mail of this one.
    return frozenset(topic for topic in MailTopic if topic.value in stored)


def _undeliverable_since(document: Document) -> datetime | None:
    """Return when the address of the user was rejected, unless the user has another by now."""
    rejected = document.get("undeliverable")
    return rejected["at"] if rejected and rejected["email"] == document["email"] else None


def to_new_document(
    name: str,
    login_name: str,
    role: Role,
    password_hash: str | None,
    now: datetime,
    family_name: str | None = None,
) -> Document:
    """Return the document of a new user without groups."""
    password = {"passwordHash": password_hash} if password_hash else {"withoutPassword": True}
    document = {
        "_id": ObjectId(),
        "name": name,
        "email": login_name,
        "role": role.value,
        "createdAt": now,
        **list_fields_of(name, login_name, family_name),
        **password,
        **({"familyName": family_name} if family_name else {}),
    }
    return with_schema_version("users", document)


def list_fields_of(name: str, login_name: str, family_name: str | None) -> Document:
    """Return what finds a user in lists: the words with their mark, and the place in the order."""
    return {
        # Nobody searches for a name that was made.
        "searchWords": to_stored_words(name if " " in login_name else f"{name} {login_name}"),
        "sortName": to_sort_name(name, family_name, login_name),
    }


def list_fields_of_user(document: Document) -> Document:
    """Return what finds the user of a document in lists, which have no erased user."""
    if document.get("erasedAt"):
        return ERASED_LIST_FIELDS
    return list_fields_of(document["name"], document["email"], document.get("familyName"))
