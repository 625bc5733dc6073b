"""Creating a series of slots."""

from datetime import date
from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import refusals
from slotlock.domain.campaigns import campaign
from slotlock.domain.shared import validation
from slotlock.domain.slots import series as domain
from slotlock.domain.slots.series import OnConflict
from slotlock.domain.users.user import Caller
from slotlock.graphql.campaigns.types import CampaignNotFound, ResourceTaken
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.refusals import InvalidInput, Locked, Refusal, RefusalCode
from slotlock.graphql.slots.inputs import CreateSlotInput
from slotlock.graphql.slots.types import Slot
from slotlock.services.slots import series


@strawberry.input(description="A series of slots to create.")
class CreateSlotSeriesInput:
    slot: CreateSlotInput = field(description="The first slot; the others are like it.")
    rrule: str = field(
        description="When the others are: a recurrence rule of RFC 5545 with COUNT or UNTIL, like "
        "`FREQ=WEEKLY;COUNT=10`, at most 500 slots within 5 years. It is followed on the clocks of "
        "the slot's time zone: a weekly 09:00 stays 09:00. FREQ is YEARLY, MONTHLY, WEEKLY or "
        "DAILY; the other parts are INTERVAL, WKST, BYMONTH, BYMONTHDAY, BYYEARDAY, BYDAY, BYHOUR, "
        "BYMINUTE and BYSETPOS. Where the rule does not name the start itself, the first slot is "
        "on the first date that it does name."
    )
    holidays: list[date] = field(
        default_factory=list,
        description="Days on which nothing of it begins, though COUNT counts them.",
    )
    on_conflict: OnConflict = field(
        default=OnConflict.STRICT,
        description="What becomes of it if the resource is taken on some dates.",
    )


@strawberry.type(description="A series was created, with all its dates or those that were free.")
class SlotSeriesCreated:
    series_id: strawberry.ID = field(description="The series, for `slots(filter: {seriesId})`.")
    slots: list[Slot] = field(description="Its slots, by start.")
    conflicts: list[ResourceTaken] = field(description="The dates that were left out, and why.")


@strawberry.type(description="The resource is taken on some dates, so that nothing was created.")
class SeriesConflicts(Refusal):
    conflicts: list[ResourceTaken] = field(description="Those dates, and what takes the resource.")


CreateSlotSeriesResult = Annotated[
    SlotSeriesCreated | SeriesConflicts | InvalidInput | CampaignNotFound | Locked,
    strawberry.union("CreateSlotSeriesResult", description="What came of creating a series."),
]


@strawberry.type
class SeriesMutations:
    @field(description="Create the slots of a series, each a slot of its own. Organisers only.")
    async def create_slot_series(
        self,
        info: Info,
        input: Annotated[CreateSlotSeriesInput, argument(description="It.")],  # noqa: A002
    ) -> CreateSlotSeriesResult:
        organiser = info.context.require_organizer
        campaign_id = ids.parse_campaign_id(input.slot.campaign_id or "")
        if input.slot.campaign_id is not None and campaign_id is None:
            return CampaignNotFound.for_id(input.slot.campaign_id)
        draft = input.slot.to_draft()
        outcome = await series.create(
            info.context.services,
            draft,
            input.rrule,
            input.holidays,
            input.on_conflict,
            organiser.user_id,
            campaign_id,
        )
        return _to_create_slot_series_result(outcome, organiser)


def _to_create_slot_series_result(
    outcome: series.CreateSeriesOutcome, viewer: Caller
) -> CreateSlotSeriesResult:
    match outcome:
        case domain.SeriesCreated():
            return SlotSeriesCreated(
                series_id=ids.series_global_id(outcome.series_id),
                slots=[Slot.from_domain(slot, viewer) for slot in outcome.slots],
                conflicts=[ResourceTaken.from_domain(each, viewer) for each in outcome.conflicts],
            )
        case domain.SeriesConflicts():
            return SeriesConflicts(
                code=RefusalCode.SERIES_CONFLICTS,
                message="The resource is taken on these dates.",
                conflicts=[ResourceTaken.from_domain(each, viewer) for each in outcome.conflicts],
            )
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case campaign.CampaignNotFound():
            return CampaignNotFound.for_id(ids.campaign_global_id(outcome.campaign_id))
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case _:
            assert_never(outcome)
