"""The version of a document's shape, which is written once, when the document is inserted.

    {..., schemaVersion: int}

A document without the field has version 1. New fields and new values of enums leave the version
unchanged, since older processes retain them. A version grows if an older process would
misunderstand the document; docs/decisions/0035 has the steps of such a change.
"""

from slotlock.infrastructure.mongo.client import Document

SCHEMA_VERSION_FIELD = "schemaVersion"
# By collection: the version of new documents, and the newest one that this process understands.
SCHEMA_VERSIONS = {
    "audit_notes": 1,
    "campaigns": 1,
    "ended_bookings": 1,
    "ended_waitlist_entries": 1,
    "slots": 1,
    "teams": 1,
    "users": 1,
}


class NewerSchemaError(ValueError):
    """A newer version stored a document that this process must not change."""


def with_schema_version(collection: str, document: Document) -> Document:
    """Return a new document of a collection with the version of its shape."""
    return {**document, SCHEMA_VERSION_FIELD: SCHEMA_VERSIONS[collection]}


def require_known_version(collection: str, document: Document) -> Document:
    """Return a document that this process may change.

    Raises:
        NewerSchemaError: this process is too old.
    """
    version = document.get(SCHEMA_VERSION_FIELD, 1)
    if version > SCHEMA_VERSIONS[collection]:
        raise NewerSchemaError(
            f"the document {document['_id']} in {collection} has schema version {version}: "
            "this process is too old to change it"
        )
    return document
