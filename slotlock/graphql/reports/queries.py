"""What organisers can read of a campaign: its figures, and who got no place."""

from datetime import datetime
from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.campaign_reports import CampaignStatistics as Figures
from slotlock.domain.reports.campaign_reports import Interval, TooManyPoints
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, First, require_valid_first
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.reports.campaign_statistics import CampaignStatistics
from slotlock.graphql.reports.unplaced import (
    UNPLACED_CURSOR,
    UnplacedConnection,
    unplaced_connection,
)
from slotlock.graphql.users.queries import decode_email, require_valid_group
from slotlock.services.campaigns import reports


@strawberry.input(description="Over which time figures are wanted, at most 1000 points.")
class TimeSeriesInput:
    every: Interval = field(
        default=Interval.HOUR, description="How much time one point stands for."
    )
    from_: datetime | None = field(
        default=None,
        name="from",
        description="When the first point begins; the campaign's opening if nothing is said.",
    )
    until: datetime | None = field(
        default=None,
        description="When the last point ends at the latest. If nothing is said it is now, or what "
        "1000 points reach.",
    )

    def to_domain(self) -> reports.TimeSeriesOptions:
        """The same as the desk knows it."""
        return reports.TimeSeriesOptions(self.every, self.from_, self.until)


CampaignIdArgument = Annotated[strawberry.ID, argument(description="The campaign.")]
TimeSeriesArgument = Annotated[
    TimeSeriesInput | None, argument(description="Asks for what happened over time as well.")
]


@strawberry.type
class CampaignReportQueries:
    @field(description="A campaign in figures; null if there is none. Organisers only.")
    async def campaign_statistics(
        self, info: Info, campaign_id: CampaignIdArgument, time_series: TimeSeriesArgument = None
    ) -> CampaignStatistics | None:
        _ = info.context.require_organizer
        found = await reports.campaign_statistics(
            info.context.services,
            require_campaign_id(campaign_id),
            time_series.to_domain() if time_series else None,
        )
        match found:
            case Figures():
                return CampaignStatistics.from_domain(found)
            case CampaignNotFound():
                return None
            case TooManyPoints():
                text = f"At most {found.max_points} points: a shorter time, or longer intervals."
                raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, text)
            case _:
                assert_never(found)

    @field(
        description="Who may take part in a campaign and has no place in any of its slots, by "
        "address; of a campaign for everybody those who tried: who wait, or whose bookings or "
        "turns ended. Where nearly everybody has a place, a page may hold fewer than were asked "
        "for, even none, while more follow: go on after its `endCursor`. Null if there is no such "
        "campaign. Organisers only."
    )
    async def unplaced(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        group: Annotated[
            str | None, argument(description="Only those who carry this group.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UnplacedConnection | None:
        organiser = info.context.require_organizer
        found = await reports.unplaced(
            info.context.services,
            require_campaign_id(campaign_id),
            require_valid_group(group),
            require_valid_first(first),
            decode_email(UNPLACED_CURSOR, after),
        )
        if isinstance(found, CampaignNotFound):
            return None
        return unplaced_connection(found, organiser, after)


def require_campaign_id(global_id: str) -> CampaignId:
    """The campaign that an id names. Errors: BAD_USER_INPUT."""
    campaign_id = ids.parse_campaign_id(global_id)
    if campaign_id is None:
        raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, "This is no id of a campaign.")
    return campaign_id
