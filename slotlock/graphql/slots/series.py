"""The mutations that create a series of slots, add dates to it and remove dates from it."""

from datetime import date, datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared import validation
from slotlock.domain.slots.series import SeriesCreated
from slotlock.domain.slots.series_dates import DatesAdded, DatesRemoved
from slotlock.graphql.campaigns.refusals import CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.enums import OnConflict
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.inputs.slots import CreateSlotInput
from slotlock.graphql.slots.refusals import (
    Locked,
    ResourceTaken,
    SeriesConflicts,
    SeriesNotFound,
    SlotNotFound,
    SlotNotPublished,
    SlotsHaveBookings,
    present_slot_refusal,
)
from slotlock.graphql.slots.types import Slot, SlotSeries
from slotlock.services.slots import series, series_dates
from slotlock.services.slots.series_dates import NewDates


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


@strawberry.input(description="The dates to add to a series.")
class AddSeriesDatesInput:
    series_id: strawberry.ID = field(description="The series.")
    start_times: list[datetime] = field(
        description="When the new slots start, 1 to 500 times. Each new slot has the length and "
        "all settings of the slot of the series that starts nearest to it, cancelled ones "
        "excepted. With them, a series has at most 500 slots within 5 years."
    )
    on_conflict: OnConflict = field(
        default=OnConflict.STRICT,
        description="How to handle dates on which a resource is taken.",
    )
    allow_past: bool = field(
        default=False, description="Whether the new slots may lie wholly in the past."
    )
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.type(description="The dates were added to the series, except those listed.")
class SeriesDatesAdded:
    series: SlotSeries = field(description="The series, which lists its slots in pages.")
    slots: list[Slot] = field(description="The new slots, by start.")
    existing: list[Slot] = field(
        description="The slots that the series had on other dates of the request, by start."
    )
    conflicts: list[ResourceTaken] = field(
        description="The dates that were skipped because a resource is taken."
    )

    @classmethod
    def from_domain(cls, outcome: DatesAdded, view: ResultView) -> Self:
        """Show the new slots, those that existed and the skipped dates."""
        return cls(
            series=SlotSeries(outcome.series_id),
            slots=[Slot.from_domain(slot, view.viewer) for slot in outcome.slots],
            existing=[Slot.from_domain(slot, view.viewer) for slot in outcome.existing],
            conflicts=[ResourceTaken.from_domain(conflict, view) for conflict in outcome.conflicts],
        )


@strawberry.input(description="The slots to remove from a series.")
class RemoveSeriesDatesInput:
    series_id: strawberry.ID = field(description="The series.")
    slot_ids: list[strawberry.ID] = field(description="The slots to remove, 1 to 500.")
    cancel_booked: bool = field(
        default=False,
        description="Whether slots that users have booked or waited for, now or earlier, are "
        "cancelled, as `cancelSlot` does it. Otherwise such a slot leads to `SlotsHaveBookings`.",
    )
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.type(description="Each of the slots was deleted, or is cancelled.")
class SeriesDatesRemoved:
    series: SlotSeries = field(description="The series, which lists its other slots in pages.")
    deleted_slot_ids: list[strawberry.ID] = field(
        description="The slots that nobody had booked or waited for."
    )
    cancelled: list[Slot] = field(
        description="The slots that were cancelled with their bookings, now or earlier."
    )

    @classmethod
    def from_domain(cls, outcome: DatesRemoved, view: ResultView) -> Self:
        """Show which slots were deleted, and those that are cancelled."""
        return cls(
            series=SlotSeries(outcome.series_id),
            deleted_slot_ids=[ids.slot_global_id(slot_id) for slot_id in outcome.deleted_ids],
            cancelled=[
                Slot.from_domain(view.slots[slot_id], view.viewer)
                for slot_id in outcome.cancelled_ids
            ],
        )


AddSeriesDatesResult = Annotated[
    SeriesDatesAdded | SeriesNotFound | SeriesConflicts | InvalidInput | Locked | KeyReused,
    strawberry.union("AddSeriesDatesResult", description="The new slots, or a refusal."),
]
RemoveSeriesDatesResult = Annotated[
    SeriesDatesRemoved
    | SeriesNotFound
    | SlotNotFound
    | SlotsHaveBookings
    | SlotNotPublished
    | InvalidInput
    | Locked
    | KeyReused,
    strawberry.union("RemoveSeriesDatesResult", description="The removed slots, or a refusal."),
]

AddSeriesDatesArgument = Annotated[
    AddSeriesDatesInput, argument(description="The dates to add, and the series.")
]
RemoveSeriesDatesArgument = Annotated[
    RemoveSeriesDatesInput, argument(description="The slots to remove, and their series.")
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
        draft = input.slot.to_draft()
        if isinstance(draft, validation.InvalidInput):
            return InvalidInput.from_domain(draft, ResultView(organizer))
        outcome = await series.create(
            info.context.services,
            draft,
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

    @field(
        description="Add slots to a series, as copies of its slots at other times. A date on which "
        "the series has a slot that is not cancelled gets no second one. Organizers only.",
        graphql_type=AddSeriesDatesResult,
    )
    async def add_series_dates(
        self,
        info: Info,
        input: AddSeriesDatesArgument,  # noqa: A002
    ) -> SeriesDatesAdded | Refusal:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        series_id = ids.parse_series_id(input.series_id)
        if series_id is None:
            return SeriesNotFound.for_id(input.series_id)
        dates = NewDates(
            series_id, frozenset(input.start_times), input.on_conflict, input.allow_past
        )
        outcome = await series_dates.add(info.context.services, dates, organizer.user_id, key)
        view = ResultView(organizer)
        if isinstance(outcome, DatesAdded):
            return SeriesDatesAdded.from_domain(outcome, view)
        return present_slot_refusal(outcome, view)

    @field(
        description="Remove slots from a series, all of them or none. Slots that nobody has booked "
        "or waited for are deleted; others can only be cancelled. Organizers only.",
        graphql_type=RemoveSeriesDatesResult,
    )
    async def remove_series_dates(
        self,
        info: Info,
        input: RemoveSeriesDatesArgument,  # noqa: A002
    ) -> SeriesDatesRemoved | Refusal:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        series_id = ids.parse_series_id(input.series_id)
        if series_id is None:
            return SeriesNotFound.for_id(input.series_id)
        slot_ids: dict[SlotId, None] = {}  # each once, in their order
        for global_id in input.slot_ids:
            slot_id = ids.parse_slot_id(global_id)
            if slot_id is None:
                return SlotNotFound.for_id(global_id)
            slot_ids[slot_id] = None
        result = await series_dates.remove(
            info.context.services,
            series_id,
            tuple(slot_ids),
            organizer.user_id,
            key,
            cancel_booked=input.cancel_booked,
        )
        outcome, view = result.outcome, ResultView(organizer, result.slots)
        if isinstance(outcome, DatesRemoved):
            return SeriesDatesRemoved.from_domain(outcome, view)
        return present_slot_refusal(outcome, view)
