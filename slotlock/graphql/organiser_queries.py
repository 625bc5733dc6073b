"""What organisers can read of a campaign: its figures."""

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
from slotlock.graphql.types.figures import CampaignFigures


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


def checked_campaign(gid: str) -> CampaignId:
    """The campaign that an id names. Errors: BAD_USER_INPUT."""
    campaign_id = ids.campaign_id_of(gid)
    if campaign_id is None:
        raise RefusedError(Code.BAD_USER_INPUT, "This is no id of a campaign.")
    return campaign_id
