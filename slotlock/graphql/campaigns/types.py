"""Campaigns as clients see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.campaigns import campaign, terms
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import CampaignState, SlotAdmission
from slotlock.graphql.core.ids import campaign_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.values import GroupLimit


@strawberry.type(
    description="From how many no-shows on a user books nothing in the campaign, and for how long."
)
class NoShowLimit:
    count: int = field(description="The number of no-shows of a user that starts a pause.")
    days: int = field(
        description="How many days the pause lasts, from the latest no-show of the user on."
    )

    @classmethod
    def from_domain(cls, limit: terms.NoShowLimit) -> Self:
        """Show the limit to a client."""
        return cls(count=limit.count, days=limit.days)


@strawberry.type(description="Slots that open and close for booking together, under shared rules.")
class Campaign(Node):
    _id: strawberry.Private[CampaignId]
    name: str = field(description="The name of the campaign.")
    published: bool = field(
        description="Whether everyone sees the campaign and, while it is open, may book its slots."
    )
    opens_at: datetime = field(description="The campaign takes bookings from this time on.")
    closes_at: datetime = field(description="The campaign takes no bookings from this time on.")
    eligible_groups: list[list[str]] = field(
        description="Sets of groups. A user may book if they have at least one group of every set; "
        "everyone may book if the list is empty."
    )
    max_bookings: int | None = field(
        description="How many bookings each user may have in the campaign; null for no limit."
    )
    forbid_overlap: bool = field(
        description="Whether a user's bookings must not overlap in time. All meetings of all "
        "campaigns with this rule count."
    )
    group_limits: list[GroupLimit] = field(
        description="How many places a group may have in each slot of the campaign."
    )
    cancel_until: datetime | None = field(
        description="Members can cancel their bookings until this time or until the cut-off of the "
        "slot, whichever is earlier; null if only the cut-off applies."
    )
    admission: SlotAdmission = field(
        description="How members get places in the slots of the campaign. If it is ANY, each slot "
        "has a setting of its own."
    )
    no_show_limit: NoShowLimit | None = field(
        description="From how many no-shows on a user books nothing; null if no-shows have no "
        "consequence."
    )
    version: int = field(description="A number that grows with every change.")

    @field(description="Whether the campaign takes bookings at the moment.")
    def state(self, info: Info) -> CampaignState:
        now = info.context.services.now()
        if now < self.opens_at:
            return CampaignState.UPCOMING
        return CampaignState.OPEN if now < self.closes_at else CampaignState.CLOSED

    @field(
        description="A text in Markdown, as the organizer entered it; null without a description. "
        "A client that shows it as HTML has to remove scripts."
    )
    async def description(self, info: Info) -> str | None:
        return await info.context.loaders.campaign_descriptions.load(self._id)

    @classmethod
    def from_domain(cls, campaign: campaign.Campaign) -> Self:
        """Show a campaign to a client."""
        terms = campaign.terms
        return cls(
            _id=campaign.id,
            id=campaign_global_id(campaign.id),
            name=campaign.name,
            published=terms.published,
            opens_at=terms.opens_at,
            closes_at=terms.closes_at,
            eligible_groups=[list(groups) for groups in terms.eligible_groups],
            max_bookings=terms.max_bookings,
            forbid_overlap=terms.forbid_overlap,
            group_limits=[GroupLimit.from_domain(limit) for limit in terms.group_limits],
            cancel_until=terms.cancel_until,
            admission=terms.admission,
            no_show_limit=NoShowLimit.from_domain(terms.no_show_limit)
            if terms.no_show_limit
            else None,
            version=terms.version,
        )


async def load_campaign(info: Info, campaign_id: CampaignId) -> Campaign | None:
    """Load a campaign if the viewer may see it."""
    found = await info.context.loaders.campaigns.load(campaign_id)
    return Campaign.from_domain(found) if found else None
