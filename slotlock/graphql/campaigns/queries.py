"""Queries that list and find campaigns."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.shared.pagination import Position
from slotlock.graphql.campaigns.types import Campaign, load_campaign
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
from slotlock.services.campaigns import campaigns

CAMPAIGNS_CURSOR = "campaigns"
CampaignConnection = Connection[Campaign]


@strawberry.type
class CampaignQueries:
    @field(description="Campaigns by opening time. Only organizers see unpublished campaigns.")
    async def campaigns(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> CampaignConnection:
        page = await campaigns.list_campaigns(
            info.context.services,
            require_valid_first(first),
            decode_position(CAMPAIGNS_CURSOR, after),
            info.context.viewer,
        )
        items = [
            (
                encode_position(CAMPAIGNS_CURSOR, Position(campaign.terms.opens_at, campaign.id)),
                Campaign.from_domain(campaign),
            )
            for campaign in page.items
        ]
        return CampaignConnection.from_items(items, has_more=page.has_more, after=after)

    @field(description="A campaign by id, or null if the caller cannot see such a campaign.")
    async def campaign(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the campaign.")],  # noqa: A002
    ) -> Campaign | None:
        campaign_id = ids.parse_campaign_id(id)
        return await load_campaign(info, campaign_id) if campaign_id else None
