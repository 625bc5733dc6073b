"""The mutation that copies a campaign with its slots, and its results."""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.campaign_copies import campaign_copy_outcomes, copying
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.graphql.campaigns.campaign_queries import Campaign
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.enums import CopyProblemKind, ProblemCode
from slotlock.graphql.core.outcomes import (
    Result,
    ResultView,
    code_and_message,
    description_of,
    refuse_id,
    register_type,
)
from slotlock.graphql.core.refusals import Refusal
from slotlock.graphql.core.shared_types import ProblemValue
from slotlock.services.campaigns import campaign_copies


@strawberry.input(description="The campaign to copy, and the dates of the copy.")
class CopyCampaignInput:
    campaign_id: strawberry.ID = field(description="The campaign to copy.")
    name: str = field(description="The name of the new campaign, 1 to 200 characters.")
    weeks: int = field(
        description="By how many weeks all dates move, 1 to 200. Each local time stays the same in "
        "the time zone of its slot; those of the campaign, in the time zone of its first slot."
    )
    dry_run: bool = field(description="Whether to report only, and to create nothing.")
    allow_past: bool = field(
        default=False,
        description="Whether slots of the copy may lie in the past, and the copy close there.",
    )
    idempotency_key: str | None = field(
        default=None, description=f"{KEY_DESCRIPTION} A dry run ignores it."
    )


@strawberry.type(description="The copy of a slot with its new times.")
class CopiedSlot:
    source_slot_id: strawberry.ID = field(description="The id of the slot that was copied.")
    title: str = field(description="The title of both slots.")
    start_time: datetime = field(description="When the copy starts.")
    end_time: datetime = field(description="When the copy ends.")
    time_zone: str = field(description="The time zone in which the local time stays the same.")

    @classmethod
    def from_domain(cls, copied: campaign_copy_outcomes.CopiedSlot) -> Self:
        return cls(
            source_slot_id=ids.slot_global_id(copied.source_id),
            title=copied.title,
            start_time=copied.start,
            end_time=copied.end,
            time_zone=copied.time_zone,
        )


@strawberry.type(description="A reason why a campaign cannot be copied to the new dates.")
class CampaignCopyProblem:
    kind: CopyProblemKind = field(description="The reason, for programs.")
    message: str = field(description="The reason as a sentence in English, with the slot's title.")
    source_slot_id: strawberry.ID | None = field(
        description="The slot whose copy has the problem; null if it is the campaign's."
    )
    other_slot_id: strawberry.ID | None = field(
        description="The existing slot that uses the resource; null for other problems."
    )

    code: Enum = field(
        description="The reason in detail, for other languages.", graphql_type=ProblemCode
    )
    values: list[ProblemValue] = field(description="The values that the message contains.")

    @classmethod
    def all_from_domain(cls, problems: Iterable[campaign_copy_outcomes.CopyProblem]) -> list[Self]:
        return [
            cls(
                kind=each.kind,
                message=each.message,
                code=each.message.code,
                values=ProblemValue.all_of(each.message),
                source_slot_id=ids.slot_global_id(each.source_id) if each.source_id else None,
                other_slot_id=ids.slot_global_id(each.other_id) if each.other_id else None,
            )
            for each in problems
        ]


@strawberry.type(description="What was created, or what a dry run would create.")
class CampaignCopy:
    campaign: Campaign | None = field(
        description="The new campaign, which is not published; null in a dry run."
    )
    opens_at: datetime = field(description="When the copy opens.")
    closes_at: datetime = field(description="When the copy closes.")
    cancel_until: datetime | None = field(
        description="Until when members can cancel their bookings in the copy; null if only the "
        "cut-off of each slot applies."
    )
    slot_count: int = field(description="The number of slots of the copy.")
    first_start_time: datetime | None = field(
        description="When the first slot starts; null without slots."
    )
    last_end_time: datetime | None = field(
        description="When the last slot ends; null without slots."
    )
    slots: list[CopiedSlot] = field(description="The first slots by start, at most 100.")
    adjusted_slots: list[CopiedSlot] = field(
        description="Slots with a local time that the clock change skips on the new date, at most "
        "100. It moves to an hour later, in most time zones."
    )
    problem_count: int = field(
        description="The number of problems because of which nothing would be created."
    )
    problems: list[CampaignCopyProblem] = field(description="The first problems, at most 100.")
    draft_problem_count: int = field(
        description="The number of drafts whose resources are taken, also by each other, so that "
        "they could not be published. They are copied nevertheless. Only a dry run counts them."
    )
    draft_problems: list[CampaignCopyProblem] = field(
        description="The problems of the first of these drafts, at most 100."
    )

    @classmethod
    def created(cls, copy: campaign_copy_outcomes.CampaignCopy) -> Self:
        """Show a new campaign."""
        return cls._from_domain(copy, Campaign(copy.campaign), NO_PROBLEMS, NO_PROBLEMS)

    @classmethod
    def previewed(cls, preview: campaign_copy_outcomes.CampaignCopyPreview) -> Self:
        """Show what a request would create."""
        return cls._from_domain(preview.copy, None, preview.problems, preview.draft_problems)

    @classmethod
    def _from_domain(
        cls,
        copy: campaign_copy_outcomes.CampaignCopy,
        new: Campaign | None,
        found: campaign_copy_outcomes.CopyProblems,
        of_drafts: campaign_copy_outcomes.CopyProblems,
    ) -> Self:
        terms = copy.campaign.terms
        return cls(
            campaign=new,
            opens_at=terms.opens_at,
            closes_at=terms.closes_at,
            cancel_until=terms.cancel_until,
            slot_count=copy.slot_count,
            first_start_time=copy.first_start,
            last_end_time=copy.last_end,
            slots=list(map(CopiedSlot.from_domain, copy.slots)),
            adjusted_slots=list(map(CopiedSlot.from_domain, copy.adjusted)),
            problem_count=found.count,
            problems=CampaignCopyProblem.all_from_domain(found.problems),
            draft_problem_count=of_drafts.count,
            draft_problems=CampaignCopyProblem.all_from_domain(of_drafts.problems),
        )


NO_PROBLEMS = campaign_copy_outcomes.CopyProblems((), 0)


@strawberry.type(description=description_of(campaign_copy_outcomes.CampaignNotCopied))
class CampaignNotCopied(Refusal):
    problem_count: int = field(description="The number of problems.")
    problems: list[CampaignCopyProblem] = field(description="The first problems, at most 100.")

    @classmethod
    def from_domain(
        cls, outcome: campaign_copy_outcomes.CampaignNotCopied, view: ResultView
    ) -> Self:
        found = outcome.problems
        return cls(
            **code_and_message(outcome, view),
            problem_count=found.count,
            problems=CampaignCopyProblem.all_from_domain(found.problems),
        )


register_type(
    campaign_copy_outcomes.CampaignCopy,
    CampaignCopy,
    lambda copy, _view: CampaignCopy.created(copy),
)
register_type(
    campaign_copy_outcomes.CampaignCopyPreview,
    CampaignCopy,
    lambda preview, _view: CampaignCopy.previewed(preview),
)
register_type(
    campaign_copy_outcomes.CampaignNotCopied, CampaignNotCopied, CampaignNotCopied.from_domain
)

COPY_CAMPAIGN = Result[campaign_copies.CopyCampaignOutcome](
    "CopyCampaignResult", "The copy, or what it would be, or a refusal."
)


@strawberry.type
class CampaignCopyMutations:
    @COPY_CAMPAIGN.mutation(
        "Copy a campaign with its slots to dates that are whole weeks later. The copy "
        "is not published, and has no bookings and no cancelled slots. Each slot is a draft if its "
        "original is one. Series and choice groups become new ones. Organizers only."
    )
    async def copy_campaign(
        self,
        info: Info,
        input: Annotated[CopyCampaignInput, argument(description="The campaign to copy.")],
    ) -> object:
        organizer, services = info.context.require_organizer(), info.context.services
        key = require_valid_key(input.idempotency_key)
        if (campaign_id := ids.parse_campaign_id(input.campaign_id)) is None:
            return refuse_id(CampaignNotFound, input.campaign_id)
        request = copying.CopyRequest(campaign_id, input.name, input.weeks, input.allow_past)
        outcome: campaign_copies.CopyCampaignOutcome
        if input.dry_run:
            outcome = await campaign_copies.preview(services, request)
        else:
            outcome = await campaign_copies.copy(services, request, organizer.user_id, key)
        return COPY_CAMPAIGN.present(outcome, ResultView(organizer))
