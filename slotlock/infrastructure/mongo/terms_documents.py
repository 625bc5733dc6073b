"""The shape of a campaign's document, and of its terms, which each of its slots has a copy of.

{id, version, published, opensAt, closesAt, eligibleGroups: [[str]], maxBookings, forbidOverlap,
 groupLimits: [{group, limit}], cancelUntil, admission, noShowLimit?: {count, days}}
"""

from collections.abc import Iterable
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
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.schema.unknown_fields import unknown_fields
from slotlock.infrastructure.mongo.schema.versions import with_schema_version
from slotlock.infrastructure.stored_enums import from_stored

TERMS_FIELDS = (
    *("id", "version", "published", "opensAt", "closesAt", "eligibleGroups"),
    *("maxBookings", "forbidOverlap", "groupLimits", "cancelUntil", "admission"),
    "noShowLimit",
)


def campaign_to_document(campaign: Campaign, now: datetime) -> Document:
    """Return the document of a new campaign."""
    fields = {"_id": ObjectId(campaign.id), **campaign_to_fields(campaign, now), "pending": False}
    return with_schema_version("campaigns", fields)


def campaign_to_fields(campaign: Campaign, now: datetime) -> Document:
    """Return the fields of a campaign that was created or changed now."""
    fields = {"name": campaign.name, "terms": terms_to_document(campaign.terms), "changedAt": now}
    if isinstance(campaign.description, str):
        fields["description"] = campaign.description
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
    return document


def _to_no_show_limit(document: Document | None) -> NoShowLimit | None:
    return NoShowLimit(document["count"], document["days"]) if document else None


def to_group_limits(documents: Iterable[Document]) -> tuple[GroupLimit, ...]:
    """Return the group limits that subdocuments describe."""
    return tuple(GroupLimit(document["group"], document["limit"]) for document in documents)


def group_limits_to_documents(limits: Iterable[GroupLimit]) -> list[Document]:
    """Return the subdocuments of group limits."""
    return [{"group": limit.group, "limit": limit.limit} for limit in limits]
