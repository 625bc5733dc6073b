"""Queries with which organizers read reports about a campaign."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import booking
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports import campaign_reports
from slotlock.domain.reports.campaign_reports import TooManyPoints
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_NAME, ListCursors
from slotlock.graphql.core.enums import Interval
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.reports.campaign_statistics import CampaignStatistics
from slotlock.graphql.slots.facts import slot_selection
from slotlock.graphql.slots.slot_types import Slot, WaitlistEntry
from slotlock.graphql.users.user_queries import User, require_valid_group
from slotlock.services.campaigns import reports
from slotlock.services.slots import viewer_queries


@strawberry.type(description="A user without a booking in a campaign.")
class UnplacedUser:
    user: User = field(description="The user who has no booking.")
    waitlist_entries: strawberry.Private[tuple[booking.WaitlistEntry, ...]]

    @field(description="The user's waiting list entries in the campaign, by start of the slot.")
    async def waiting(self, info: Info) -> list[WaitlistEntry]:
        viewer = info.context.viewer
        slot_ids = [entry.slot_id for entry in self.waitlist_entries]
        found = await viewer_queries.find_slots(
            info.context.services, slot_ids, viewer, slot_selection(info)
        )
        return [
            WaitlistEntry(entry, Slot(found[entry.slot_id], viewer))
            for entry in self.waitlist_entries
            if entry.slot_id in found
        ]

    @classmethod
    def from_domain(cls, unplaced: campaign_reports.UnplacedUser, viewer: Caller) -> Self:
        return cls(
            user=User.from_domain(unplaced.user, viewer), waitlist_entries=unplaced.waitlist_entries
        )


UNPLACED = ListCursors("unplaced", BY_NAME, lambda unplaced: unplaced.user.login_name)
UnplacedConnection = Connection[UnplacedUser]


@strawberry.input(description="The intervals of a time series, at most 1000.")
class TimeSeriesInput:
    every: Interval = field(default=Interval.HOUR, description="The length of one interval.")
    from_: datetime | None = field(
        default=None,
        name="from",
        description="When the first interval starts; by default when the campaign opens.",
    )
    until: datetime | None = field(
        default=None,
        description="When the last interval ends at the latest; by default now, or after 1000 "
        "intervals.",
    )

    def to_options(self) -> reports.TimeSeriesOptions:
        """Convert the input to the service's options. Errors: BAD_USER_INPUT."""
        require_valid_period("from", self.from_, "until", self.until)
        return reports.TimeSeriesOptions(self.every, self.from_, self.until)


CampaignIdArgument = Annotated[strawberry.ID, argument(description="The id of the campaign.")]
TimeSeriesArgument = Annotated[
    TimeSeriesInput | None, argument(description="Also return the bookings over time.")
]
GroupArgument = Annotated[str | None, argument(description="Only users of this group.")]


@strawberry.type
class CampaignReportQueries:
    @field(
        description="The statistics of a campaign, or null if there is no such campaign. "
        "Organizers only.",
        graphql_type=CampaignStatistics | None,
    )
    async def campaign_statistics(
        self, info: Info, campaign_id: CampaignIdArgument, time_series: TimeSeriesArgument = None
    ) -> object:
        info.context.require_organizer()
        outcome = await reports.campaign_statistics(
            info.context.services,
            require_campaign_id(campaign_id),
            time_series.to_options() if time_series else None,
        )
        if isinstance(outcome, TooManyPoints):
            raise bad_input(
                "timeSeries",
                f"A time series has at most {outcome.max_points} intervals. Please choose a "
                "shorter time or longer intervals.",
            )
        return outcome

    @field(
        description="The users without a booking in a campaign, by e-mail address. In a campaign "
        "for certain groups, these are the eligible users. In a campaign for everyone, they are "
        "the users who wait or whose booking or waiting list entry ended. While nearly all users "
        "have a booking, a page may contain fewer items than requested, or none, although more "
        "follow: continue after its `endCursor`. Null if there is no such campaign. Organizers "
        "only."
    )
    async def unplaced(
        self,
        info: Info,
        campaign_id: CampaignIdArgument,
        group: GroupArgument = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UnplacedConnection | None:
        organizer = info.context.require_organizer()
        outcome = await reports.unplaced(
            info.context.services,
            require_campaign_id(campaign_id),
            require_valid_group(group),
            *page_start(UNPLACED, first, after),
        )
        if outcome is None:
            return None
        return UnplacedConnection.of_page(
            outcome, lambda found: UnplacedUser.from_domain(found, organizer), UNPLACED, after
        )


def require_campaign_id(global_id: str) -> CampaignId:
    """Return the campaign of a global id. Errors: BAD_USER_INPUT."""
    if (campaign_id := ids.parse_campaign_id(global_id)) is None:
        raise bad_input("campaignId", "`campaignId` must be the id of a campaign.")
    return campaign_id
