"""The mutation that creates a series of slots."""

from datetime import date
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.slots.series import SeriesCreated
from slotlock.graphql.campaigns.refusals import CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.enums import OnConflict
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.inputs import CreateSlotInput
from slotlock.graphql.slots.refusals import (
    Locked,
    ResourceTaken,
    SeriesConflicts,
    present_slot_refusal,
)
from slotlock.graphql.slots.types import Slot, SlotSeries
from slotlock.services.slots import series


@strawberry.input(description="The series of slots to create.")
class CreateSlotSeriesInput:
    slot: CreateSlotInput = field(
        description="The first slot. The others differ from it in their times only. The key "
        "belongs to the series, so `idempotencyKey` of the slot must be null."
    )
    rrule: str = field(
        description="The dates of the series: a recurrence rule of RFC 5545 with COUNT or UNTIL, "
        "like `FREQ=WEEKLY;COUNT=10`, for at most 500 slots within 5 years. The rule follows the "
        "local time of the slot's time zone: a weekly 09:00 stays 09:00. FREQ is YEARLY, MONTHLY, "
        "WEEKLY or DAILY; the other parts are INTERVAL, WKST, BYMONTH, BYMONTHDAY, BYYEARDAY, "
        "BYDAY, BYHOUR, BYMINUTE and BYSETPOS. If the rule does not match the start of the first "
        "slot, the series starts on the first date that it matches."
    )
    holidays: list[date] = field(
        default_factory=list,
        description="Days on which no slot of the series starts. COUNT includes them.",
    )
    on_conflict: OnConflict = field(
        default=OnConflict.STRICT,
        description="How to handle dates on which the resource is taken.",
    )
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.type(description="The series was created, without the dates that were skipped.")
class SlotSeriesCreated:
    series_id: strawberry.ID = field(
        description="The id of the series, for `slots(filter: {seriesId})`."
    )
    series: SlotSeries = field(description="The series, which lists its slots in pages.")
    slots: list[Slot] = field(description="The slots of the series, by start.")
    conflicts: list[ResourceTaken] = field(
        description="The dates that were skipped because the resource is taken."
    )

    @classmethod
    def from_domain(cls, outcome: SeriesCreated, view: ResultView) -> Self:
        """Show the slots of the series and the skipped dates."""
        return cls(
            series_id=ids.series_global_id(outcome.series_id),
            series=SlotSeries(outcome.series_id),
            slots=[Slot.from_domain(slot, view.viewer) for slot in outcome.slots],
            conflicts=[ResourceTaken.from_domain(conflict, view) for conflict in outcome.conflicts],
        )


CreateSlotSeriesResult = Annotated[
    SlotSeriesCreated | SeriesConflicts | InvalidInput | CampaignNotFound | Locked | KeyReused,
    strawberry.union("CreateSlotSeriesResult", description="The new series, or a refusal."),
]

CreateSlotSeriesArgument = Annotated[
    CreateSlotSeriesInput, argument(description="The series to create.")
]


@strawberry.type
class SeriesMutations:
    @field(
        description="Create a series of slots. Each slot can be changed and booked on its own. "
        "Organizers only.",
        graphql_type=CreateSlotSeriesResult,
    )
    async def create_slot_series(
        self,
        info: Info,
        input: CreateSlotSeriesArgument,  # noqa: A002
    ) -> SlotSeriesCreated | Refusal:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        if input.slot.idempotency_key is not None:
            raise bad_input(
                "idempotencyKey", "`idempotencyKey` belongs to the series, not to its slot."
            )
        campaign_id = ids.parse_campaign_id(input.slot.campaign_id or "")
        if input.slot.campaign_id is not None and campaign_id is None:
            return CampaignNotFound.for_id(input.slot.campaign_id)
        outcome = await series.create(
            info.context.services,
            input.slot.to_draft(),
            input.rrule,
            input.holidays,
            input.on_conflict,
            organizer.user_id,
            campaign_id,
            key,
        )
        view = ResultView(organizer)
        if isinstance(outcome, SeriesCreated):
            return SlotSeriesCreated.from_domain(outcome, view)
        return present_slot_refusal(outcome, view)
