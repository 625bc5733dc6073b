"""Campaigns as clients see them, and the queries that list and find them."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.campaigns import campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.draw import Draw
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    FilterByTime,
    First,
    OrderByTime,
    TimeList,
)
from slotlock.graphql.core.enums import CampaignState, SlotAdmission, TimeOrder
from slotlock.graphql.core.ids import campaign_global_id
from slotlock.graphql.core.node import Node, attribute_field
from slotlock.graphql.core.outcomes import ResultView, present, type_above
from slotlock.graphql.core.shared_types import GroupLimit, similar_groups_of
from slotlock.services.campaigns import campaigns


@strawberry.type(
    description="From how many no-shows on a user books nothing in the campaign, and for how long."
)
class NoShowLimit:
    count: int = field(description="The number of no-shows of a user that starts a pause.")
    days: int = field(
        description="How many days the pause lasts, from the latest no-show of the user on."
    )


@strawberry.type(description="Slots that open and close for booking together, under shared rules.")
class Campaign(Node):
    def __init__(self, campaign: campaign.Campaign) -> None:
        self.id = campaign_global_id(campaign.id)
        self._campaign = campaign

    name = attribute_field("_campaign.name", str, "The name of the campaign.")
    published = attribute_field(
        "_campaign.terms.published",
        bool,
        "Whether everyone sees the campaign and, while it is open, may book its slots.",
    )
    published_at = attribute_field(
        "_campaign.published_at",
        datetime | None,
        "Since when everyone sees the campaign; null while it is hidden.",
    )
    opens_at = attribute_field(
        "_campaign.terms.opens_at", datetime, "The campaign takes bookings from this time on."
    )
    closes_at = attribute_field(
        "_campaign.terms.closes_at", datetime, "The campaign takes no bookings from this time on."
    )
    eligible_groups = attribute_field(
        "_campaign.terms.eligible_groups",
        list[list[str]],
        "Sets of groups. A user may book if they have at least one group of every set; everyone "
        "may book if the list is empty.",
    )
    max_bookings = attribute_field(
        "_campaign.terms.max_bookings",
        int | None,
        "How many bookings each user may have in the campaign; null for no limit.",
    )
    forbid_overlap = attribute_field(
        "_campaign.terms.forbid_overlap",
        bool,
        "Whether a user's bookings must not overlap in time. All meetings of all campaigns with "
        "this rule count.",
    )
    group_limits = attribute_field(
        "_campaign.terms.group_limits",
        list[GroupLimit],
        "How many places a group may have in each slot of the campaign.",
    )

    @field(description=similar_groups_of("the campaign is for, or limits"))
    async def similar_groups(self, info: Info) -> list[list[str]] | None:
        terms = self._campaign.terms
        limited = [each.group for each in terms.group_limits]
        eligible = [group for groups in terms.eligible_groups for group in groups]
        return await info.context.loaders.similar_groups([*eligible, *limited])

    cancel_until = attribute_field(
        "_campaign.terms.cancel_until",
        datetime | None,
        "Members can cancel their bookings until this time or until the cut-off of the slot, "
        "whichever is earlier; null if only the cut-off applies.",
    )
    admission = attribute_field(
        "_campaign.terms.admission",
        SlotAdmission,
        "How members get places in the slots of the campaign. If it is ANY, each slot has a "
        "setting of its own.",
    )
    no_show_limit = attribute_field(
        "_campaign.terms.no_show_limit",
        NoShowLimit | None,
        "From how many no-shows on a user books nothing; null if no-shows have no consequence.",
    )
    require_verified_email = attribute_field(
        "_campaign.terms.require_verified_email",
        bool,
        "Whether users verify their e-mail address before they book.",
    )
    leader_groups = attribute_field(
        "_campaign.terms.leader_groups",
        list[str],
        "The groups whose users the leaders of slots can find and book. A name that ends in a star "
        "is the beginning of names; empty if leaders book nobody.",
    )
    reminder_minutes = attribute_field(
        "_campaign.terms.reminder_minutes",
        int | None,
        "How many minutes before the start a mail reminds all who have a place in a slot of the "
        "campaign; null or 0 for none. Each slot can have a setting of its own.",
    )
    opening_mail_hours = attribute_field(
        "_campaign.terms.opening_mail_hours",
        int | None,
        "How many hours before the opening a mail goes to all who may book; null or 0 for none.",
    )
    version = attribute_field(
        "_campaign.terms.version", int, "A number that grows with every change."
    )

    @field(description="Whether the campaign takes bookings at the moment.")
    def state(self, info: Info) -> CampaignState:
        return self._campaign.terms.state_at(info.context.services.now())

    @field(
        description="Whether the caller or a dependent has wishes in the draw of the campaign, "
        "alone or with others. `myDrawResult` says what became of them."
    )
    async def has_my_wishes(self, info: Info) -> bool:
        return bool(await info.context.loaders.has_wishes.load(self._campaign.id))

    @field(
        graphql_type=type_above(Draw) | None,
        description="The draw of the campaign: the one that goes on, or else the latest. Null "
        "without one.",
    )
    async def draw(self, info: Info) -> object:
        found = await info.context.services.draws.find_latest(self._campaign.id)
        return present(found, ResultView(info.context.viewer)) if found else None

    @field(
        description="A text in Markdown, as the organizer entered it; null without a description. "
        "A client that shows it as HTML has to remove scripts."
    )
    async def description(self, info: Info) -> str | None:
        return await info.context.loaders.campaign_descriptions.load(self._campaign.id)

    @field(
        description="A text of the organizers that stands in each mail about a place that its "
        "user keeps; null without one, and for members."
    )
    def mail_note(self, info: Info) -> str | None:
        viewer = info.context.viewer
        return self._campaign.mail_note if viewer and viewer.is_organizer else None


async def load_campaign(info: Info, campaign_id: CampaignId) -> Campaign | None:
    """Load a campaign if the viewer may see it."""
    found = await info.context.loaders.campaigns.load(campaign_id)
    return Campaign(found) if found else None


def _times_of(found: campaign.Campaign) -> tuple[datetime, datetime, str]:
    return found.terms.opens_at, found.terms.closes_at, found.id


CAMPAIGNS = TimeList("campaigns", _times_of)
CampaignConnection = Connection[Campaign]


@strawberry.type
class CampaignQueries:
    @field(
        description="Campaigns by the time when they take bookings. Only organizers see "
        "unpublished campaigns."
    )
    async def campaigns(
        self,
        info: Info,
        filter: FilterByTime = None,
        order_by: OrderByTime = TimeOrder.UPCOMING_FIRST,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> CampaignConnection:
        services, viewer = info.context.services, info.context.viewer
        page, cursors = CAMPAIGNS.page(filter, order_by, first, after, services.now())
        found = await campaigns.list_campaigns(services, page, viewer)
        return CampaignConnection.of_page(found, Campaign, cursors, after)

    @field(description="A campaign by id, or null if the caller cannot see such a campaign.")
    async def campaign(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(description="The id of the campaign.")],
    ) -> Campaign | None:
        campaign_id = ids.parse_campaign_id(id)
        return await load_campaign(info, campaign_id) if campaign_id else None
