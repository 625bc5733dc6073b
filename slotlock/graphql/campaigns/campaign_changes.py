"""Live updates of campaigns."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import strawberry
from strawberry import field

from slotlock.graphql.campaigns.campaign_queries import Campaign
from slotlock.graphql.context import Context
from slotlock.graphql.core.ids import campaign_global_id
from slotlock.graphql.shared_events import SharedEvents
from slotlock.services.live.campaign_hub import CampaignSubscription, CampaignUpdate

# What is read from MongoDB, what only organizers see, and what depends on the caller.
UNSHARED_FIELDS = frozenset({"description", "mailNote", "hasMyWishes", "similarGroups", "draw"})


@strawberry.type(description="The present state of a campaign that changed.")
class CampaignChange:
    campaign_id: strawberry.ID = field(description="The id of the campaign.")
    campaign: Campaign | None = field(
        description="The campaign as it is now; null once it is deleted, or hidden from the caller."
    )

    @classmethod
    def from_domain(cls, update: CampaignUpdate) -> Self:
        return cls(
            campaign_id=campaign_global_id(update.campaign_id),
            campaign=Campaign(update.campaign) if update.campaign else None,
        )


class CampaignChanges(SharedEvents[CampaignUpdate]):
    """The campaigns that the viewer may see; each state is the same for all viewers."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @asynccontextmanager
    async def open(self) -> AsyncIterator[CampaignSubscription]:
        """Subscribe to campaigns. Errors: UNAUTHENTICATED, as `viewer`."""
        viewer, hub = self._context.viewer, self._context.services.campaign_changes
        is_organizer = viewer is not None and viewer.is_organizer
        async with hub.subscribe(include_unpublished=is_organizer) as subscription:
            yield subscription

    @staticmethod
    def to_event(state: CampaignUpdate) -> CampaignChange:
        """Return the state as clients see it."""
        return CampaignChange.from_domain(state)
