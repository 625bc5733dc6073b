"""Campaigns as clients see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.campaigns import campaign as domain
from slotlock.domain.campaigns.terms import CampaignState
from slotlock.domain.slots.resources import ResourceTaken as Taken
from slotlock.domain.users.user import Caller
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import campaign_global_id
from slotlock.graphql.core.refusals import Refusal, RefusalCode
from slotlock.graphql.slots.types import GroupLimit, Meeting, Slot
from slotlock.graphql.users.types import Node


@strawberry.type(description="Slots that are booked under one set of rules, between two times.")
class Campaign(Node):
    name: str = field(description="What it is called.")
    published: bool = field(description="Whether people see it and, while it is open, may book.")
    opens_at: datetime = field(description="From this instant on it takes bookings.")
    closes_at: datetime = field(description="From this instant on it takes none.")
    eligible_groups: list[list[str]] = field(
        description="Sets of groups: a person needs one group of every set. Empty for everybody."
    )
    max_bookings: int | None = field(description="How many bookings a person may have in it.")
    forbid_overlap: bool = field(
        description="Whether a person's bookings in campaigns that say so may not overlap in time, "
        "all meetings considered."
    )
    group_limits: list[GroupLimit] = field(
        description="How many of which groups may have a place in each of its slots."
    )
    cancel_until: datetime | None = field(
        description="Until when people give places back themselves, if it is before the slot's own "
        "cut-off."
    )
    version: int = field(description="Grows with every change.")

    @field(description="Where it is in time.")
    def state(self, info: Info) -> CampaignState:
        now = info.context.services.now()
        if now < self.opens_at:
            return CampaignState.UPCOMING
        return CampaignState.OPEN if now < self.closes_at else CampaignState.CLOSED

    @classmethod
    def from_domain(cls, campaign: domain.Campaign) -> Self:
        terms = campaign.terms
        return cls(
            id=campaign_global_id(campaign.id),
            name=campaign.name,
            published=terms.published,
            opens_at=terms.opens_at,
            closes_at=terms.closes_at,
            eligible_groups=[list(groups) for groups in terms.eligible_groups],
            max_bookings=terms.max_bookings,
            forbid_overlap=terms.forbid_overlap,
            group_limits=[GroupLimit(group=g.group, limit=g.limit) for g in terms.group_limits],
            cancel_until=terms.cancel_until,
            version=terms.version,
        )


@strawberry.type(description="No such campaign, or none that the caller may see.")
class CampaignNotFound(Refusal):
    campaign_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.CAMPAIGN_NOT_FOUND,
            message="There is no such campaign.",
            campaign_id=strawberry.ID(global_id),
        )


@strawberry.type(description="Too many others changed the same campaign at once.")
class CampaignBusy(Refusal):
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: domain.CampaignBusy) -> Self:
        return cls(
            code=RefusalCode.CAMPAIGN_BUSY,
            message="Others are changing this campaign. Please try again.",
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(description="Another published slot uses the resource at the same time.")
class ResourceTaken(Refusal):
    meeting: Meeting = field(description="The first meeting of the slot that overlaps.")
    other: Slot = field(description="The slot that uses it.")
    other_meeting: Meeting = field(description="Its meeting at that time.")

    @classmethod
    def from_domain(cls, outcome: Taken, viewer: Caller) -> Self:
        return cls(
            code=RefusalCode.RESOURCE_TAKEN,
            message=f"{outcome.resource} is used by another slot at that time.",
            meeting=Meeting.from_domain(outcome.meeting),
            other=Slot.from_domain(outcome.other, viewer),
            other_meeting=Meeting.from_domain(outcome.other_meeting),
        )
