"""What organisers do with campaigns."""

from datetime import datetime
from typing import Annotated, Any, assert_never

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.campaigns import campaign
from slotlock.domain.shared import validation
from slotlock.graphql.campaigns.types import Campaign, CampaignBusy, CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.core.refusals import InvalidInput
from slotlock.graphql.slots.inputs import GroupLimitInput, to_domain_group_limits
from slotlock.services.campaigns import campaigns

NULLABLE_FIELDS = ("max_bookings", "cancel_until")
ELIGIBLE_GROUPS_DESCRIPTION = (
    "Sets of groups, at most 10: a person needs one group of every set. Empty for everybody."
)
GROUP_LIMITS_DESCRIPTION = "How many of which groups may have a place in each of its slots."
CANCEL_UNTIL_DESCRIPTION = (
    "Until when people give places back themselves; null leaves it to the slots' cut-offs."
)
FORBID_OVERLAP_DESCRIPTION = (
    "Whether a person's bookings in campaigns that say so may not overlap in time, all meetings "
    "considered."
)


@strawberry.input(description="A campaign to create.")
class CreateCampaignInput:
    name: str = field(description="What it is called, 1 to 200 characters.")
    opens_at: datetime = field(description="From this instant on it takes bookings.")
    closes_at: datetime = field(description="From this instant on it takes none.")
    published: bool = field(default=False, description="Whether people see it at once.")
    eligible_groups: list[list[str]] = field(
        default_factory=list, description=ELIGIBLE_GROUPS_DESCRIPTION
    )
    max_bookings: int | None = field(
        default=None, description="How many bookings a person may have in it, 1 to 1000."
    )
    forbid_overlap: bool = field(default=False, description=FORBID_OVERLAP_DESCRIPTION)
    group_limits: list[GroupLimitInput] = field(
        default_factory=list, description=GROUP_LIMITS_DESCRIPTION
    )
    cancel_until: datetime | None = field(default=None, description=CANCEL_UNTIL_DESCRIPTION)


@strawberry.input(description="Changes to a campaign; a field that is left out stays as it is.")
class UpdateCampaignInput:
    campaign_id: strawberry.ID = field(description="The campaign.")
    name: str | None = field(default=UNSET, description="What it is called.")
    opens_at: datetime | None = field(default=UNSET, description="When it opens.")
    closes_at: datetime | None = field(default=UNSET, description="When it closes.")
    eligible_groups: list[list[str]] | None = field(
        default=UNSET, description=ELIGIBLE_GROUPS_DESCRIPTION
    )
    max_bookings: int | None = field(
        default=UNSET, description="How many bookings a person may have in it; null for any."
    )
    forbid_overlap: bool | None = field(default=UNSET, description=FORBID_OVERLAP_DESCRIPTION)
    group_limits: list[GroupLimitInput] | None = field(
        default=UNSET, description=GROUP_LIMITS_DESCRIPTION
    )
    cancel_until: datetime | None = field(default=UNSET, description=CANCEL_UNTIL_DESCRIPTION)

    def to_changes(self) -> dict[str, Any]:
        """The given fields by their names in the domain. Errors: BAD_USER_INPUT."""
        named: dict[str, Any] = {
            "name": self.name,
            "opens_at": self.opens_at,
            "closes_at": self.closes_at,
            "eligible_groups": self.eligible_groups,
            "max_bookings": self.max_bookings,
            "forbid_overlap": self.forbid_overlap,
            "group_limits": self.group_limits,
            "cancel_until": self.cancel_until,
        }
        given = {name: value for name, value in named.items() if value is not UNSET}
        if any(value is None and name not in NULLABLE_FIELDS for name, value in given.items()):
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT,
                "Of a campaign's fields only `maxBookings` and `cancelUntil` can be null.",
            )
        if self.eligible_groups:
            given["eligible_groups"] = tuple(map(tuple, self.eligible_groups))
        if self.group_limits:
            given["group_limits"] = to_domain_group_limits(self.group_limits)
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
        organiser = info.context.require_organizer
        terms = {
            "published": input.published,
            "opens_at": input.opens_at,
            "closes_at": input.closes_at,
            "eligible_groups": tuple(map(tuple, input.eligible_groups)),
            "max_bookings": input.max_bookings,
            "forbid_overlap": input.forbid_overlap,
            "group_limits": to_domain_group_limits(input.group_limits),
            "cancel_until": input.cancel_until,
        }
        outcome = await campaigns.create(
            info.context.services, input.name, terms, organiser.user_id
        )
        if isinstance(outcome, validation.InvalidInput):
            return InvalidInput.from_domain(outcome)
        return Campaign.from_domain(outcome.campaign)

    @field(
        description="Change a campaign. Once it is answered every slot knows it. Organisers only."
    )
    async def update_campaign(
        self,
        info: Info,
        input: Annotated[UpdateCampaignInput, argument(description="It.")],  # noqa: A002
    ) -> UpdateCampaignResult:
        return await _edit_campaign(info, input.campaign_id, input.to_changes())

    @field(description="Show a campaign to everybody. Organisers only.")
    async def publish_campaign(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> UpdateCampaignResult:
        return await _edit_campaign(info, campaign_id, {"published": True})

    @field(
        description="Hide a campaign. Once it is answered no booking is made any more; those there "
        "are stay. Organisers only."
    )
    async def unpublish_campaign(
        self, info: Info, campaign_id: CampaignIdArgument
    ) -> UpdateCampaignResult:
        return await _edit_campaign(info, campaign_id, {"published": False})


async def _edit_campaign(
    info: Info, global_id: str, changes: dict[str, Any]
) -> UpdateCampaignResult:
    organiser = info.context.require_organizer
    campaign_id = ids.parse_campaign_id(global_id)
    if campaign_id is None:
        return CampaignNotFound.for_id(global_id)
    outcome = await campaigns.edit(info.context.services, campaign_id, changes, organiser.user_id)
    match outcome:
        case campaign.CampaignSaved():
            return Campaign.from_domain(outcome.campaign)
        case campaign.CampaignNotFound():
            return CampaignNotFound.for_id(global_id)
        case campaign.CampaignBusy():
            return CampaignBusy.from_domain(outcome)
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case _:
            assert_never(outcome)
