"""What can be read of campaigns."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.desk import campaigns as desk
from slotlock.domain.listing import Position
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.cursors import position_cursor, position_of
from slotlock.graphql.types.campaigns import Campaign
from slotlock.graphql.types.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    checked_first,
)

CAMPAIGNS = "campaigns"
CampaignConnection = Connection[Campaign]


@strawberry.type
class CampaignQueries:
    @field(description="Campaigns by their opening; unpublished ones for organisers only.")
    async def campaigns(
        self, info: Info, first: First = DEFAULT_FIRST, after: After = None
    ) -> CampaignConnection:
        viewer = info.context.reader
        page = await desk.list_campaigns(
            info.context.desk, checked_first(first), position_of(CAMPAIGNS, after), viewer
        )
        items = [
            (
                position_cursor(CAMPAIGNS, Position(campaign.terms.opens_at, campaign.id)),
                Campaign.of(campaign),
            )
            for campaign in page.items
        ]
        return CampaignConnection.of(items, more=page.more, after=after)

    @field(description="A campaign by its id.")
    async def campaign(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The campaign.")],  # noqa: A002
    ) -> Campaign | None:
        campaign_id = ids.campaign_id_of(id)
        found = campaign_id and await desk.find(info.context.desk, campaign_id, info.context.reader)
        return Campaign.of(found) if found else None
