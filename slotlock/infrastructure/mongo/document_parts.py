"""Parts of documents that several collections have: the version of their shape, and terms.

    {..., schemaVersion: int}      written once, when the document is inserted

A document without the field has version 1. New fields and new values of enums leave the version
unchanged, since older processes retain them. A version grows if an older process would
misunderstand the document; docs/decisions/0035 has the steps of such a change.

A subdocument that changes or moves is written again as a whole. Its value in the domain therefore
has the subdocument that it was loaded from, as `stored`.

Each slot of a campaign has a copy of the terms of the campaign:

    {id, version, published, opensAt, closesAt, eligibleGroups: [[str]], maxBookings, forbidOverlap,
     groupLimits: [{group, limit}], cancelUntil, admission, noShowLimit?: {count, days},
     requireVerifiedEmail?: true, reminderMinutes?, openingMailHours?}
"""

from collections.abc import Collection, Iterable
from datetime import datetime

from bson import ObjectId

from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import (
    CampaignId,
    CampaignTerms,
    GroupLimit,
    NoShowLimit,
    SlotAdmission,
)
from slotlock.domain.resources.resource import Resource, ResourceKind, name_key
from slotlock.domain.shared.folding import search_key
from slotlock.domain.shared.value_object import Stored
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.stored_enums import from_stored

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
TERMS_FIELDS = (
    *("id", "version", "published", "opensAt", "closesAt", "eligibleGroups"),
    *("maxBookings", "forbidOverlap", "groupLimits", "cancelUntil", "admission"),
    *("noShowLimit", "requireVerifiedEmail", "reminderMinutes", "openingMailHours"),
    "leaderGroups",
)


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


def unknown_fields(stored: Stored, known: Collection[str]) -> Document:
    """Return the fields that a newer version stored; none for a value that was not loaded."""
    if not stored:
        return {}
    return {name: value for name, value in stored.items() if name not in known}


def campaign_to_document(campaign: Campaign, now: datetime) -> Document:
    """Return the document of a new campaign."""
    fields = {"_id": ObjectId(campaign.id), **campaign_to_fields(campaign, now), "pending": False}
    return with_schema_version("campaigns", fields)


def resource_to_document(resource: Resource) -> Document:
    """Return the document of a new resource."""
    return {
        "_id": resource.name,
        "version": 1,
        "nameKey": name_key(resource.name),
        "foldedName": search_key(resource.name),
        "kind": resource.kind.value,
        **leader_field(resource),
    }


def to_resource(document: Document) -> Resource:
    """Return the resource that a document describes."""
    kind = from_stored(document.get("kind", ResourceKind.OTHER), ResourceKind.OTHER)
    leader = document.get("leader")
    return Resource(document["_id"], kind, UserId(str(leader)) if leader else None)


def leader_field(resource: Resource) -> Document:
    """Return the field of the leader of a resource, if it has one."""
    return {"leader": ObjectId(resource.leader)} if resource.leader else {}


def campaign_to_fields(campaign: Campaign, now: datetime) -> Document:
    """Return the fields of a campaign that was created or changed now."""
    fields = {"name": campaign.name, "terms": terms_to_document(campaign.terms), "changedAt": now}
    if isinstance(campaign.description, str):
        fields["description"] = campaign.description
    if campaign.mail_note is not None:
        fields["mailNote"] = campaign.mail_note
    if campaign.published_at is not None:
        fields["publishedAt"] = campaign.published_at
    return fields


def to_terms(document: Document) -> CampaignTerms:
    """Return the terms that a subdocument describes."""
    return CampaignTerms(
        campaign_id=CampaignId(str(document["id"])),
        version=document["version"],
        published=document["published"],
        opens_at=document["opensAt"],
        closes_at=document["closesAt"],
        eligible_groups=tuple(map(tuple, document["eligibleGroups"])),
        max_bookings=document["maxBookings"],
        forbid_overlap=document["forbidOverlap"],
        group_limits=to_group_limits(document["groupLimits"]),
        cancel_until=document["cancelUntil"],
        admission=from_stored(
            document.get("admission", SlotAdmission.ANY), SlotAdmission.QUEUE_ONLY
        ),
        no_show_limit=_to_no_show_limit(document.get("noShowLimit")),
        require_verified_email="requireVerifiedEmail" in document,
        reminder_minutes=document.get("reminderMinutes"),
        opening_mail_hours=document.get("openingMailHours"),
        leader_groups=tuple(document.get("leaderGroups", ())),
        stored=document,
    )


def terms_to_document(terms: CampaignTerms) -> Document:
    """Return the subdocument of terms."""
    document = {
        **unknown_fields(terms.stored, TERMS_FIELDS),
        "id": ObjectId(terms.campaign_id),
        "version": terms.version,
        "published": terms.published,
        "opensAt": terms.opens_at,
        "closesAt": terms.closes_at,
        "eligibleGroups": [list(groups) for groups in terms.eligible_groups],
        "maxBookings": terms.max_bookings,
        "forbidOverlap": terms.forbid_overlap,
        "groupLimits": group_limits_to_documents(terms.group_limits),
        "cancelUntil": terms.cancel_until,
        "admission": terms.admission.value,
    }
    if limit := terms.no_show_limit:
        document["noShowLimit"] = {"count": limit.count, "days": limit.days}
    if terms.require_verified_email:
        document["requireVerifiedEmail"] = True
    if terms.reminder_minutes is not None:
        document["reminderMinutes"] = terms.reminder_minutes
    if terms.opening_mail_hours is not None:
        document["openingMailHours"] = terms.opening_mail_hours
    if terms.leader_groups:
        document["leaderGroups"] = list(terms.leader_groups)
    return document


def _to_no_show_limit(document: Document | None) -> NoShowLimit | None:
    return NoShowLimit(document["count"], document["days"]) if document else None


def to_group_limits(documents: Iterable[Document]) -> tuple[GroupLimit, ...]:
    """Return the group limits that subdocuments describe."""
    return tuple(GroupLimit(document["group"], document["limit"]) for document in documents)


def group_limits_to_documents(limits: Iterable[GroupLimit]) -> list[Document]:
    """Return the subdocuments of group limits."""
    return [{"group": limit.group, "limit": limit.limit} for limit in limits]
