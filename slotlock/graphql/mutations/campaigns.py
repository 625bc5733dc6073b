"""What organisers do with campaigns."""

from datetime import datetime
from typing import Annotated, Any, assert_never

import strawberry
from strawberry import UNSET, argument, field

from slotlock.desk import campaigns as desk
from slotlock.domain import campaigns as domain
from slotlock.domain import refusals as refused
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.campaigns import Campaign, CampaignBusy, CampaignNotFound
from slotlock.graphql.types.refusals import InvalidInput
from slotlock.graphql.types.slot_inputs import GroupLimitInput, limits_from

NULLABLE = ("most", "cancel_until")
ELIGIBLE = "Sets of groups, at most 10: a person needs one group of every set. Empty for everybody."
LIMITS = "How many of which groups may have a place in each of its slots."
CANCEL = "Until when people give places back themselves; null leaves it to the slots' cut-offs."
OVERLAP = (
    "Whether a person's bookings in campaigns that say so may not overlap in time, all meetings "
    "considered."
)


@strawberry.input(description="A campaign to create.")
class CreateCampaignInput:
    name: str = field(description="What it is called, 1 to 200 characters.")
    opens_at: datetime = field(description="From this instant on it takes bookings.")
    closes_at: datetime = field(description="From this instant on it takes none.")
    published: bool = field(default=False, description="Whether people see it at once.")
    eligible_groups: list[list[str]] = field(default_factory=list, description=ELIGIBLE)
    max_bookings: int | None = field(
        default=None, description="How many bookings a person may have in it, 1 to 1000."
    )
    forbid_overlap: bool = field(default=False, description=OVERLAP)
    group_limits: list[GroupLimitInput] = field(default_factory=list, description=LIMITS)
    cancel_until: datetime | None = field(default=None, description=CANCEL)


@strawberry.input(description="Changes to a campaign; a field that is left out stays as it is.")
class UpdateCampaignInput:
    campaign_id: strawberry.ID = field(description="The campaign.")
    name: str | None = field(default=UNSET, description="What it is called.")
    opens_at: datetime | None = field(default=UNSET, description="When it opens.")
    closes_at: datetime | None = field(default=UNSET, description="When it closes.")
    eligible_groups: list[list[str]] | None = field(default=UNSET, description=ELIGIBLE)
    max_bookings: int | None = field(
        default=UNSET, description="How many bookings a person may have in it; null for any."
    )
    forbid_overlap: bool | None = field(default=UNSET, description=OVERLAP)
    group_limits: list[GroupLimitInput] | None = field(default=UNSET, description=LIMITS)
    cancel_until: datetime | None = field(default=UNSET, description=CANCEL)

    def changes(self) -> dict[str, Any]:
        """The given fields by their names in the domain. Errors: BAD_USER_INPUT."""
        named: dict[str, Any] = {
            "name": self.name,
            "opens_at": self.opens_at,
            "closes_at": self.closes_at,
            "eligible": self.eligible_groups,
            "most": self.max_bookings,
            "forbid_overlap": self.forbid_overlap,
            "group_limits": self.group_limits,
            "cancel_until": self.cancel_until,
        }
        given = {name: value for name, value in named.items() if value is not UNSET}
        if any(value is None and name not in NULLABLE for name, value in given.items()):
            raise RefusedError(
                Code.BAD_USER_INPUT,
                "Of a campaign's fields only `maxBookings` and `cancelUntil` can be null.",
            )
        if self.eligible_groups:
            given["eligible"] = tuple(map(tuple, self.eligible_groups))
        if self.group_limits:
            given["group_limits"] = limits_from(self.group_limits)
        return {name: () if value == [] else value for name, value in given.items()}


CreateCampaignResult = Annotated[
    Campaign | InvalidInput,
    strawberry.union("CreateCampaignResult", description="What came of creating a campaign."),
]
UpdateCampaignResult = Annotated[
    Campaign | InvalidInput | CampaignNotFound | CampaignBusy,
    strawberry.union("UpdateCampaignResult", description="What came of changing a campaign."),
]

CampaignIdArgument = Annotated[strawberry.ID, argument(description="The campaign.")]


@strawberry.type
class CampaignMutations:
    @field(description="Create a campaign. Organisers only.")
    async def create_campaign(
        self,
        info: Info,
        input: Annotated[CreateCampaignInput, argument(description="It.")],  # noqa: A002
    ) -> CreateCampaignResult:
        organiser = info.context.organiser
        terms = {
            "published": input.published,
            "opens_at": input.opens_at,
            "closes_at": input.closes_at,
            "eligible": tuple(map(tuple, input.eligible_groups)),
            "most": input.max_bookings,
            "forbid_overlap": input.forbid_overlap,
            "group_limits": limits_from(input.group_limits),
            "cancel_until": input.cancel_until,
        }
        outcome = await desk.create(info.context.desk, input.name, terms, organiser.user_id)
        if isinstance(outcome, refused.InvalidInput):
            return InvalidInput.of(outcome)
        return Campaign.of(outcome.campaign)

    @field(
        description="Change a campaign. Once it is answered every slot knows it. Organisers only."
    )
    async def update_campaign(
        self,
        info: Info,
        input: Annotated[UpdateCampaignInput, argument(description="It.")],  # noqa: A002
    ) -> UpdateCampaignResult:
        return await _edit(info, input.campaign_id, input.changes())

    @field(description="Show a campaign to everybody. Organisers only.")
    async def publish_campaign(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> UpdateCampaignResult:
        return await _edit(info, campaign_id, {"published": True})

    @field(
        description="Hide a campaign. Once it is answered no booking is made any more; those there "
        "are stay. Organisers only."
    )
    async def unpublish_campaign(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> UpdateCampaignResult:
        return await _edit(info, campaign_id, {"published": False})


async def _edit(info: Info, gid: str, changes: dict[str, Any]) -> UpdateCampaignResult:
    organiser = info.context.organiser
    campaign_id = ids.campaign_id_of(gid)
    if campaign_id is None:
        return CampaignNotFound.of(gid)
    outcome = await desk.edit(info.context.desk, campaign_id, changes, organiser.user_id)
    match outcome:
        case domain.CampaignKept():
            return Campaign.of(outcome.campaign)
        case domain.CampaignNotFound():
            return CampaignNotFound.of(gid)
        case domain.CampaignBusy():
            return CampaignBusy.of(outcome)
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case _:
            assert_never(outcome)
