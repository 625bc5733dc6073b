"""The shape of a campaign's terms, in its own document and copied into each of its slots.

{id, version, published, opensAt, closesAt, eligible: [[str]], most, forbidOverlap,
 groupLimits: [{group, limit}], cancelUntil}
"""

from collections.abc import Iterable

from bson import ObjectId

from slotlock.domain.terms import CampaignId, GroupLimit, Terms
from slotlock.stores.mongo import Document


def terms_of(document: Document) -> Terms:
    """The terms that a document describes."""
    return Terms(
        campaign_id=CampaignId(str(document["id"])),
        version=document["version"],
        published=document["published"],
        opens_at=document["opensAt"],
        closes_at=document["closesAt"],
        eligible=tuple(map(tuple, document["eligible"])),
        most=document["most"],
        forbid_overlap=document["forbidOverlap"],
        group_limits=limits_of(document["groupLimits"]),
        cancel_until=document["cancelUntil"],
    )


def terms_document(terms: Terms) -> Document:
    """The document of terms."""
    return {
        "id": ObjectId(terms.campaign_id),
        "version": terms.version,
        "published": terms.published,
        "opensAt": terms.opens_at,
        "closesAt": terms.closes_at,
        "eligible": [list(groups) for groups in terms.eligible],
        "most": terms.most,
        "forbidOverlap": terms.forbid_overlap,
        "groupLimits": limit_documents(terms.group_limits),
        "cancelUntil": terms.cancel_until,
    }


def limits_of(documents: Iterable[Document]) -> tuple[GroupLimit, ...]:
    """The limits that documents describe."""
    return tuple(GroupLimit(document["group"], document["limit"]) for document in documents)


def limit_documents(limits: Iterable[GroupLimit]) -> list[Document]:
    """The documents of limits."""
    return [{"group": limit.group, "limit": limit.limit} for limit in limits]
