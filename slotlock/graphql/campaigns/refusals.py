"""Refusals about campaigns."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.campaigns import campaign
from slotlock.domain.shared import validation
from slotlock.graphql.core.ids import campaign_global_id
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView


@strawberry.type(description="The campaign does not exist, or the caller may not see it.")
class CampaignNotFound(Refusal):
    campaign_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no campaign."""
        return cls(
            code=RefusalCode.CAMPAIGN_NOT_FOUND,
            message="This campaign does not exist.",
            campaign_id=strawberry.ID(global_id),
        )

    @classmethod
    def from_domain(cls, outcome: campaign.CampaignNotFound, _view: ResultView) -> Self:
        """Show that no campaign has the id."""
        return cls.for_id(campaign_global_id(outcome.campaign_id))


@strawberry.type(description="Too many requests are changing the campaign at once.")
class CampaignBusy(Refusal):
    retry_after_ms: int = field(description="How long to wait before a retry, in milliseconds.")

    @classmethod
    def from_domain(cls, outcome: campaign.CampaignBusy, _view: ResultView) -> Self:
        """Show when a retry may succeed."""
        return cls(
            code=RefusalCode.CAMPAIGN_BUSY,
            message="Others are changing this campaign right now. Please try again.",
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(
    description="The campaign is published or has slots, so it cannot be deleted. It can be "
    "unpublished, and slots without bookings can be deleted."
)
class CampaignInUse(Refusal):
    published: bool = field(description="Whether the campaign is published.")
    has_slots: bool = field(description="Whether the campaign has slots.")

    @classmethod
    def from_domain(cls, outcome: campaign.CampaignInUse, _view: ResultView) -> Self:
        """Show why the campaign cannot be deleted."""
        return cls(
            code=RefusalCode.CAMPAIGN_IN_USE,
            message="This campaign is published or has slots.",
            published=outcome.published,
            has_slots=outcome.has_slots,
        )


def present_campaign_refusal(
    refusal: campaign.CampaignNotFound
    | campaign.CampaignBusy
    | campaign.CampaignInUse
    | refusals.KeyReused
    | validation.InvalidInput,
    view: ResultView,
) -> Refusal:
    """Show why a campaign was not created, changed or deleted."""
    match refusal:
        case campaign.CampaignNotFound():
            return CampaignNotFound.from_domain(refusal, view)
        case campaign.CampaignBusy():
            return CampaignBusy.from_domain(refusal, view)
        case campaign.CampaignInUse():
            return CampaignInUse.from_domain(refusal, view)
        case refusals.KeyReused():
            return KeyReused.from_domain(refusal, view)
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
