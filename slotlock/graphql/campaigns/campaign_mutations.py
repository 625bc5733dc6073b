"""Mutations with which organizers create, change, publish, unpublish and delete campaigns."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import UNSET, argument, field

from slotlock.domain.campaigns import campaign
from slotlock.domain.campaigns.terms import NoShowLimit
from slotlock.domain.shared.unchanged import Unchanged
from slotlock.graphql.campaigns.campaign_queries import Campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import (
    KEY_DESCRIPTION,
    require_valid_key,
    to_change,
    to_required_change,
)
from slotlock.graphql.core.enums import SlotAdmission
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id, register_type
from slotlock.graphql.core.shared_types import GroupLimitInput, to_domain_group_limits
from slotlock.services.campaigns import campaigns

register_type(campaign.CampaignSaved, Campaign, lambda saved, _view: Campaign(saved.campaign))

CREATE_CAMPAIGN = Result[campaigns.CreateCampaignOutcome](
    "CreateCampaignResult", "The new campaign, or a refusal."
)
UPDATE_CAMPAIGN = Result[campaign.CampaignOutcome](
    "UpdateCampaignResult", "The changed campaign, or a refusal."
)
DELETE_CAMPAIGN = Result[campaign.DeleteCampaignOutcome](
    "DeleteCampaignResult", "What was deleted, or a refusal."
)


ELIGIBLE_GROUPS_DESCRIPTION = (
    "At most 10 sets of groups. A user may book if they have at least one group of every set; "
    "everyone may book if the list is empty."
)
LEADER_GROUPS_DESCRIPTION = (
    "The groups whose users the leaders of slots can find and book (`bookableUsers`), at most "
    "100. A name that ends in a star is the beginning of names. Empty if leaders book nobody."
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
MAIL_NOTE_DESCRIPTION = (
    "A text that stands in each mail about a place that its user keeps: booked, promoted, moved, "
    "changed or begins soon. At most 1,000 characters; null for none."
)
REQUIRE_VERIFIED_EMAIL_DESCRIPTION = (
    "Whether users verify their e-mail address before they book (`requestEmailVerification`). "
    "Accounts with a user name have none to verify."
)
REMINDER_DESCRIPTION = (
    "How many minutes before the start a mail reminds all who have a place in a slot of the "
    "campaign, at most 20160; null or 0 for none. Each slot can have a setting of its own."
)
OPENING_MAIL_DESCRIPTION = (
    "How many hours before the opening a mail goes to all who may book, at most 336; null or 0 for "
    "none."
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
    require_verified_email: bool = field(
        default=False, description=REQUIRE_VERIFIED_EMAIL_DESCRIPTION
    )
    mail_note: str | None = field(default=None, description=MAIL_NOTE_DESCRIPTION)
    reminder_minutes: int | None = field(default=None, description=REMINDER_DESCRIPTION)
    opening_mail_hours: int | None = field(default=None, description=OPENING_MAIL_DESCRIPTION)
    leader_groups: list[str] = field(default_factory=list, description=LEADER_GROUPS_DESCRIPTION)
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
            mail_note=self.mail_note,
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
            require_verified_email=self.require_verified_email,
            reminder_minutes=self.reminder_minutes,
            opening_mail_hours=self.opening_mail_hours,
            leader_groups=tuple(self.leader_groups),
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
    require_verified_email: bool | None = field(
        default=UNSET, description=REQUIRE_VERIFIED_EMAIL_DESCRIPTION
    )
    mail_note: str | None = field(default=UNSET, description=MAIL_NOTE_DESCRIPTION)
    reminder_minutes: int | None = field(default=UNSET, description=REMINDER_DESCRIPTION)
    opening_mail_hours: int | None = field(default=UNSET, description=OPENING_MAIL_DESCRIPTION)
    leader_groups: list[str] | None = field(default=UNSET, description=LEADER_GROUPS_DESCRIPTION)
    allow_past: bool = field(
        default=False,
        description="Whether a new `closesAt` may be in the past, which closes the campaign.",
    )

    def to_changes(self) -> campaign.CampaignPatch:
        """Convert the input to the domain's changes. Errors: BAD_USER_INPUT."""
        eligible_groups = to_required_change("eligibleGroups", self.eligible_groups)
        group_limits = to_required_change("groupLimits", self.group_limits)
        leader_groups = to_required_change("leaderGroups", self.leader_groups)
        no_show_limit = to_change(self.no_show_limit)
        return campaign.CampaignPatch(
            name=to_required_change("name", self.name),
            description=to_change(self.description),
            mail_note=to_change(self.mail_note),
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
            require_verified_email=to_required_change(
                "requireVerifiedEmail", self.require_verified_email
            ),
            reminder_minutes=to_change(self.reminder_minutes),
            opening_mail_hours=to_change(self.opening_mail_hours),
            leader_groups=leader_groups
            if isinstance(leader_groups, Unchanged)
            else tuple(leader_groups),
            allow_past=self.allow_past,
        )


def _to_group_sets(group_sets: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(groups) for groups in group_sets)


CreateCampaignArgument = Annotated[
    CreateCampaignInput, argument(description="The campaign to create.")
]
UpdateCampaignArgument = Annotated[
    UpdateCampaignInput, argument(description="The campaign and its changes.")
]


@strawberry.type
class CampaignMutations:
    @CREATE_CAMPAIGN.mutation("Create a campaign. Organizers only.")
    async def create_campaign(self, info: Info, input: CreateCampaignArgument) -> object:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        outcome = await campaigns.create(
            info.context.services, input.to_draft(), organizer.user_id, key
        )
        return CREATE_CAMPAIGN.present(outcome, ResultView(organizer))

    @UPDATE_CAMPAIGN.mutation(
        "Change a campaign. When the response arrives, the changes apply to every slot "
        "of the campaign. Organizers only."
    )
    async def update_campaign(self, info: Info, input: UpdateCampaignArgument) -> object:
        return await _edit_campaign(info, input.campaign_id, input.to_changes())

    @UPDATE_CAMPAIGN.mutation("Publish a campaign, so that everyone sees it. Organizers only.")
    async def publish_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to publish.")],
    ) -> object:
        return await _edit_campaign(info, campaign_id, campaign.CampaignPatch(published=True))

    @UPDATE_CAMPAIGN.mutation(
        "Hide a campaign. When the response arrives, nobody can book its slots any "
        "more; existing bookings stay. Organizers only."
    )
    async def unpublish_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to hide.")],
    ) -> object:
        return await _edit_campaign(info, campaign_id, campaign.CampaignPatch(published=False))

    @DELETE_CAMPAIGN.mutation(
        "Delete a campaign that is not published and has no slots. Organizers only."
    )
    async def delete_campaign(
        self,
        info: Info,
        campaign_id: Annotated[strawberry.ID, argument(description="The campaign to delete.")],
    ) -> object:
        organizer = info.context.require_organizer()
        if (parsed_id := ids.parse_campaign_id(campaign_id)) is None:
            return refuse_id(campaign.CampaignNotFound, campaign_id)
        outcome = await campaigns.delete(info.context.services, parsed_id, organizer.user_id)
        return DELETE_CAMPAIGN.present(outcome, ResultView(organizer))


async def _edit_campaign(info: Info, global_id: str, changes: campaign.CampaignPatch) -> object:
    organizer = info.context.require_organizer()
    if (campaign_id := ids.parse_campaign_id(global_id)) is None:
        return refuse_id(campaign.CampaignNotFound, global_id)
    outcome = await campaigns.edit(info.context.services, campaign_id, changes, organizer.user_id)
    return UPDATE_CAMPAIGN.present(outcome, ResultView(organizer))
