"""Mutations with which organizers create, change, publish, unpublish and delete campaigns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.campaigns import campaign
from slotlock.domain.campaigns.terms import NoShowLimit
from slotlock.domain.shared.changes import Unchanged
from slotlock.graphql.campaigns.refusals import (
    CampaignBusy,
    CampaignInUse,
    CampaignNotFound,
    present_campaign_refusal,
)
from slotlock.graphql.campaigns.types import Campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    require_valid_key,
    to_change,
    to_required_change,
)
from slotlock.graphql.core.enums import SlotAdmission
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.values import GroupLimitInput, to_domain_group_limits
from slotlock.services.campaigns import campaigns

ELIGIBLE_GROUPS_DESCRIPTION = (
    "At most 10 sets of groups. A user may book if they have at least one group of every set; "
    "everyone may book if the list is empty."
)
GROUP_LIMITS_DESCRIPTION = "How many places a group may have in each slot of the campaign."
CANCEL_UNTIL_DESCRIPTION = (
    "Until when members can cancel their bookings, if the cut-off of the slot is not earlier; null "
    "if only the cut-off applies."
)
FORBID_OVERLAP_DESCRIPTION = (
    "Whether a user's bookings must not overlap in time. All meetings of all campaigns with this "
    "rule count."
)
ADMISSION_DESCRIPTION = (
    "How members get places in the slots of the campaign. If it is ANY, each slot has a setting of "
    "its own."
)
NO_SHOW_LIMIT_DESCRIPTION = (
    "From how many no-shows on a user books nothing, and for how long; null if no-shows have no "
    "consequence."
)


@strawberry.input(
    description="From how many no-shows on a user books nothing in the campaign, and for how long."
)
class NoShowLimitInput:
    count: int = field(description="The number of no-shows that starts a pause, 1 to 100.")
    days: int = field(
        description="How many days the pause lasts, from the latest no-show on, 1 to 366."
    )

    def to_domain(self) -> NoShowLimit:
        """Return the limit of the domain."""
        return NoShowLimit(self.count, self.days)


@strawberry.input(description="The campaign to create.")
class CreateCampaignInput:
    name: str = field(description="The name of the campaign, 1 to 200 characters.")
    opens_at: datetime = field(description="The campaign takes bookings from this time on.")
    closes_at: datetime = field(description="The campaign takes no bookings from this time on.")
    description: str | None = field(
        default=None,
        description="A text in Markdown, at most 10,000 characters, which is stored as it is.",
    )
    published: bool = field(
        default=False, description="Whether everyone sees the campaign immediately."
    )
    eligible_groups: list[list[str]] = field(
        default_factory=list, description=ELIGIBLE_GROUPS_DESCRIPTION
    )
    max_bookings: int | None = field(
        default=None,
        description="How many bookings each user may have in the campaign, 1 to 1000; null for no "
        "limit.",
    )
    forbid_overlap: bool = field(default=False, description=FORBID_OVERLAP_DESCRIPTION)
    group_limits: list[GroupLimitInput] = field(
        default_factory=list, description=GROUP_LIMITS_DESCRIPTION
    )
    cancel_until: datetime | None = field(default=None, description=CANCEL_UNTIL_DESCRIPTION)
    admission: SlotAdmission = field(default=SlotAdmission.ANY, description=ADMISSION_DESCRIPTION)
    no_show_limit: NoShowLimitInput | None = field(
        default=None, description=NO_SHOW_LIMIT_DESCRIPTION
    )
    allow_past: bool = field(
        default=False,
        description="Whether `closesAt` may be in the past, as in an import of an old term.",
    )
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)

    def to_draft(self) -> campaign.CampaignDraft:
        """Return the draft of the domain."""
        return campaign.CampaignDraft(
            name=self.name,
            description=self.description,
            opens_at=self.opens_at,
            closes_at=self.closes_at,
            published=self.published,
            eligible_groups=_to_group_sets(self.eligible_groups),
            max_bookings=self.max_bookings,
            forbid_overlap=self.forbid_overlap,
            group_limits=to_domain_group_limits(self.group_limits),
            cancel_until=self.cancel_until,
            admission=self.admission,
            no_show_limit=self.no_show_limit.to_domain() if self.no_show_limit else None,
            allow_past=self.allow_past,
        )


@strawberry.input(description="The changes to a campaign. Fields that are left out do not change.")
class UpdateCampaignInput:
    campaign_id: strawberry.ID = field(description="The campaign to change.")
    name: str | None = field(
        default=UNSET, description="The new name of the campaign, 1 to 200 characters."
    )
    description: str | None = field(
        default=UNSET,
        description="A text in Markdown, at most 10,000 characters; null to remove it.",
    )
    opens_at: datetime | None = field(
        default=UNSET, description="The campaign takes bookings from this time on."
    )
    closes_at: datetime | None = field(
        default=UNSET, description="The campaign takes no bookings from this time on."
    )
    eligible_groups: list[list[str]] | None = field(
        default=UNSET, description=ELIGIBLE_GROUPS_DESCRIPTION
    )
    max_bookings: int | None = field(
        default=UNSET,
        description="How many bookings each user may have in the campaign, 1 to 1000; null for no "
        "limit.",
    )
    forbid_overlap: bool | None = field(default=UNSET, description=FORBID_OVERLAP_DESCRIPTION)
    group_limits: list[GroupLimitInput] | None = field(
        default=UNSET, description=GROUP_LIMITS_DESCRIPTION
    )
    cancel_until: datetime | None = field(default=UNSET, description=CANCEL_UNTIL_DESCRIPTION)
    admission: SlotAdmission | None = field(default=UNSET, description=ADMISSION_DESCRIPTION)
    no_show_limit: NoShowLimitInput | None = field(
        default=UNSET, description=NO_SHOW_LIMIT_DESCRIPTION
    )
    allow_past: bool = field(
        default=False,
        description="Whether a new `closesAt` may be in the past, which closes the campaign.",
    )

    def to_changes(self) -> campaign.CampaignChanges:
        """Convert the input to the domain's changes. Errors: BAD_USER_INPUT."""
        eligible_groups = to_required_change("eligibleGroups", self.eligible_groups)
        group_limits = to_required_change("groupLimits", self.group_limits)
        no_show_limit = to_change(self.no_show_limit)
        return campaign.CampaignChanges(
            name=to_required_change("name", self.name),
            description=to_change(self.description),
            opens_at=to_required_change("opensAt", self.opens_at),
            closes_at=to_required_change("closesAt", self.closes_at),
            eligible_groups=eligible_groups
            if isinstance(eligible_groups, Unchanged)
            else _to_group_sets(eligible_groups),
            max_bookings=to_change(self.max_bookings),
            forbid_overlap=to_required_change("forbidOverlap", self.forbid_overlap),
            group_limits=group_limits
            if isinstance(group_limits, Unchanged)
            else to_domain_group_limits(group_limits),
            cancel_until=to_change(self.cancel_until),
            admission=to_required_change("admission", self.admission),
            no_show_limit=no_show_limit.to_domain()
            if isinstance(no_show_limit, NoShowLimitInput)
            else no_show_limit,
            allow_past=self.allow_past,
        )


def _to_group_sets(group_sets: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(groups) for groups in group_sets)


CreateCampaignResult = Annotated[
    Campaign | InvalidInput | KeyReused,
    strawberry.union("CreateCampaignResult", description="The new campaign, or a refusal."),
]
UpdateCampaignResult = Annotated[
    Campaign | InvalidInput | CampaignNotFound | CampaignBusy,
    strawberry.union("UpdateCampaignResult", description="The changed campaign, or a refusal."),
]


@strawberry.type(description="The campaign was deleted.")
class CampaignDeleted:
    campaign_id: strawberry.ID = field(description="The id of the deleted campaign.")


DeleteCampaignResult = Annotated[
    CampaignDeleted | CampaignNotFound | CampaignInUse | CampaignBusy,
    strawberry.union("DeleteCampaignResult", description="What was deleted, or a refusal."),
]

CreateCampaignArgument = Annotated[
    CreateCampaignInput, argument(description="The campaign to create.")
]
UpdateCampaignArgument = Annotated[
    UpdateCampaignInput, argument(description="The campaign and its changes.")
]


@strawberry.type
class CampaignMutations:
    @field(description="Create a campaign. Organizers only.", graphql_type=CreateCampaignResult)
    async def create_campaign(
        self,
        info: Info,
        input: CreateCampaignArgument,  # noqa: A002
    ) -> Campaign | Refusal:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        outcome = await campaigns.create(
            info.context.services, input.to_draft(), organizer.user_id, key
        )
        if isinstance(outcome, campaign.CampaignSaved):
            return Campaign.from_domain(outcome.campaign)
        return present_campaign_refusal(outcome, ResultView(organizer))

    @field(
        description="Change a campaign. When the response arrives, the changes apply to every slot "
        "of the campaign. Organizers only.",
        graphql_type=UpdateCampaignResult,
    )
    async def update_campaign(
        self,
        info: Info,
        input: UpdateCampaignArgument,  # noqa: A002
    ) -> Campaign | Refusal:
        return await _edit_campaign(info, input.campaign_id, input.to_changes())

    @field(
        description="Publish a campaign, so that everyone sees it. Organizers only.",
        graphql_type=UpdateCampaignResult,
    )
    async def publish_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to publish.")],
    ) -> Campaign | Refusal:
        return await _edit_campaign(info, campaign_id, campaign.CampaignChanges(published=True))

    @field(
        description="Hide a campaign. When the response arrives, nobody can book its slots any "
        "more; existing bookings stay. Organizers only.",
        graphql_type=UpdateCampaignResult,
    )
    async def unpublish_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to hide.")],
    ) -> Campaign | Refusal:
        return await _edit_campaign(info, campaign_id, campaign.CampaignChanges(published=False))

    @field(
        description="Delete a campaign that is not published and has no slots. Organizers only.",
        graphql_type=DeleteCampaignResult,
    )
    async def delete_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to delete.")],
    ) -> CampaignDeleted | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_campaign_id(campaign_id)
        if parsed_id is None:
            return CampaignNotFound.for_id(campaign_id)
        outcome = await campaigns.delete(info.context.services, parsed_id, organizer.user_id)
        if isinstance(outcome, campaign.CampaignDeleted):
            return CampaignDeleted(campaign_id=ids.campaign_global_id(outcome.campaign_id))
        return present_campaign_refusal(outcome, ResultView(organizer))


async def _edit_campaign(
    info: Info, global_id: str, changes: campaign.CampaignChanges
) -> Campaign | Refusal:
    organizer = info.context.require_organizer()
    campaign_id = ids.parse_campaign_id(global_id)
    if campaign_id is None:
        return CampaignNotFound.for_id(global_id)
    outcome = await campaigns.edit(info.context.services, campaign_id, changes, organizer.user_id)
    if isinstance(outcome, campaign.CampaignSaved):
        return Campaign.from_domain(outcome.campaign)
    return present_campaign_refusal(outcome, ResultView(organizer))
