"""What can be read of campaigns."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.shared.pagination import Position
from slotlock.graphql.campaigns.types import Campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_position, encode_position
from slotlock.services.campaigns.campaigns import find, list_campaigns

CAMPAIGNS_CURSOR = "campaigns"
CampaignConnection = Connection[Campaign]


@strawberry.type
class CampaignQueries:
    @field(description="Campaigns by their opening; unpublished ones for organisers only.")
    async def campaigns(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> CampaignConnection:
        viewer = info.context.viewer
        page = await list_campaigns(
            info.context.services,
            require_valid_first(first),
            decode_position(CAMPAIGNS_CURSOR, after),
            viewer,
        )
        items = [
            (
                encode_position(CAMPAIGNS_CURSOR, Position(campaign.terms.opens_at, campaign.id)),
                Campaign.from_domain(campaign),
            )
            for campaign in page.items
        ]
        return CampaignConnection.from_items(items, has_more=page.has_more, after=after)

    @field(description="A campaign by its id.")
    async def campaign(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The campaign.")],  # noqa: A002
    ) -> Campaign | None:
        campaign_id = ids.parse_campaign_id(id)
        found = campaign_id and await find(info.context.services, campaign_id, info.context.viewer)
        return Campaign.from_domain(found) if found else None
