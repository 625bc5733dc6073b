"""What organisers can read of a campaign: its figures, and who got no place."""

from datetime import datetime
from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import organising as desk
from slotlock.domain.campaigns import CampaignNotFound
from slotlock.domain.figures import CampaignFigures as Figures
from slotlock.domain.figures import Interval, TooManyPoints
from slotlock.domain.terms import CampaignId
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.people_queries import address_of, checked_group
from slotlock.graphql.types.connections import DEFAULT_FIRST, After, First, checked_first
from slotlock.graphql.types.figures import CampaignFigures
from slotlock.graphql.types.unplaced import UNPLACED, UnplacedConnection, unplaced_page


@strawberry.input(description="Over which time figures are wanted, at most 1000 points.")
class OverTimeInput:
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

    def as_domain(self) -> desk.OverTime:
        """The same as the desk knows it."""
        return desk.OverTime(self.every, self.from_, self.until)


CampaignIdArgument = Annotated[strawberry.ID, argument(description="The campaign.")]
OverTimeArgument = Annotated[
    OverTimeInput | None, argument(description="Asks for what happened over time as well.")
]


@strawberry.type
class OrganiserQueries:
    @field(description="A campaign in figures; null if there is none. Organisers only.")
    async def campaign_figures(
        self, info: Info, campaign_id: CampaignIdArgument, over_time: OverTimeArgument = None
    ) -> CampaignFigures | None:
        _ = info.context.organiser
        found = await desk.campaign_figures(
            info.context.desk,
            checked_campaign(campaign_id),
            over_time.as_domain() if over_time else None,
        )
        match found:
            case Figures():
                return CampaignFigures.of(found)
            case CampaignNotFound():
                return None
            case TooManyPoints():
                text = f"At most {found.most} points: a shorter time, or longer intervals."
                raise RefusedError(Code.BAD_USER_INPUT, text)
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
        organiser = info.context.organiser
        found = await desk.unplaced(
            info.context.desk,
            checked_campaign(campaign_id),
            checked_group(group),
            checked_first(first),
            address_of(UNPLACED, after),
        )
        if isinstance(found, CampaignNotFound):
            return None
        return unplaced_page(found, organiser, after)


def checked_campaign(gid: str) -> CampaignId:
    """The campaign that an id names. Errors: BAD_USER_INPUT."""
    campaign_id = ids.campaign_id_of(gid)
    if campaign_id is None:
        raise RefusedError(Code.BAD_USER_INPUT, "This is no id of a campaign.")
    return campaign_id
