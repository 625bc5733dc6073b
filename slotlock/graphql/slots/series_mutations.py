"""The mutations that create a series of slots, add dates to it and remove dates from it."""

from datetime import date, datetime
from typing import Annotated, Self

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import SeriesNotFound, SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.shared import validation
from slotlock.domain.slots.resource_conflicts import ResourceTaken
from slotlock.domain.slots.series import SeriesCreated
from slotlock.domain.slots.series_dates import DatesAdded, DatesRemoved
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.enums import OnConflict
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.core.outcomes import (
    Result,
    ResultView,
    list_of,
    present,
    refuse_id,
    register_type,
)
from slotlock.graphql.slots.holiday_lists import load_holidays
from slotlock.graphql.slots.inputs import HOLIDAY_LIST_DESCRIPTION, CreateSlotInput
from slotlock.graphql.slots.slot_results import show_slot
from slotlock.graphql.slots.slot_types import Slot, SlotSeries
from slotlock.services.slots import series_creation, series_dates
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
    holiday_list_id: strawberry.ID | None = field(
        default=None, description=HOLIDAY_LIST_DESCRIPTION
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
    conflicts: list[object] = field(
        description="The dates that were skipped because the resource is taken.",
        graphql_type=list_of(ResourceTaken),
    )
    skipped_holidays: list[date] = field(
        description="The dates of the rule that were skipped because they are holidays."
    )

    @classmethod
    def from_domain(cls, outcome: SeriesCreated, view: ResultView) -> Self:
        return cls(
            series_id=ids.series_global_id(outcome.series_id),
            series=SlotSeries(outcome.series_id),
            slots=[Slot(slot, view.viewer) for slot in outcome.slots],
            conflicts=[present(conflict, view) for conflict in outcome.conflicts],
            skipped_holidays=list(outcome.skipped_holidays),
        )


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
    holiday_list_id: strawberry.ID | None = field(
        default=None, description=HOLIDAY_LIST_DESCRIPTION
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
    conflicts: list[object] = field(
        description="The dates that were skipped because a resource is taken.",
        graphql_type=list_of(ResourceTaken),
    )
    skipped_holidays: list[date] = field(
        description="The dates that were skipped because they are holidays."
    )

    @classmethod
    def from_domain(cls, outcome: DatesAdded, view: ResultView) -> Self:
        """Show the new slots, those that existed and the skipped dates."""
        return cls(
            series=SlotSeries(outcome.series_id),
            slots=[Slot(slot, view.viewer) for slot in outcome.slots],
            existing=[Slot(slot, view.viewer) for slot in outcome.existing],
            conflicts=[present(conflict, view) for conflict in outcome.conflicts],
            skipped_holidays=list(outcome.skipped_holidays),
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
            cancelled=[show_slot(slot_id, outcome, view) for slot_id in outcome.cancelled_ids],
        )


register_type(SeriesCreated, SlotSeriesCreated, SlotSeriesCreated.from_domain)
register_type(DatesAdded, SeriesDatesAdded, SeriesDatesAdded.from_domain)
register_type(DatesRemoved, SeriesDatesRemoved, SeriesDatesRemoved.from_domain)

CREATE_SERIES = Result[series_creation.CreateSeriesOutcome](
    "CreateSlotSeriesResult", "The new series, or a refusal."
)
ADD_DATES = Result[series_dates.AddDatesOutcome](
    "AddSeriesDatesResult", "The new slots, or a refusal."
)
REMOVE_DATES = Result[series_dates.RemoveDatesOutcome](
    "RemoveSeriesDatesResult", "The removed slots, or a refusal."
)

AddSeriesDatesArgument = Annotated[
    AddSeriesDatesInput, argument(description="The dates to add, and the series.")
]
RemoveSeriesDatesArgument = Annotated[
    RemoveSeriesDatesInput, argument(description="The slots to remove, and their series.")
]


@strawberry.type
class SeriesMutations:
    @CREATE_SERIES.mutation(
        "Create a series of slots. Each slot can be changed and booked on its own. Organizers only."
    )
    async def create_slot_series(self, info: Info, input: CreateSlotSeriesArgument) -> object:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        if input.slot.idempotency_key is not None:
            raise bad_input(
                "idempotencyKey", "`idempotencyKey` belongs to the series, not to its slot."
            )
        campaign_id = ids.parse_campaign_id(input.slot.campaign_id or "")
        if input.slot.campaign_id is not None and campaign_id is None:
            return refuse_id(CampaignNotFound, input.slot.campaign_id)
        draft = input.slot.to_draft()
        if isinstance(draft, validation.InvalidInput):
            return CREATE_SERIES.present(draft, ResultView(organizer))
        listed = await load_holidays(info, input.holiday_list_id)
        if isinstance(listed, validation.InvalidInput):
            return CREATE_SERIES.present(listed, ResultView(organizer))
        outcome = await series_creation.create(
            info.context.services,
            draft,
            input.rrule,
            listed.union(input.holidays),
            input.on_conflict,
            organizer.user_id,
            campaign_id,
            key,
        )
        return CREATE_SERIES.present(outcome, ResultView(organizer))

    @ADD_DATES.mutation(
        "Add slots to a series, as copies of its slots at other times. A date on which "
        "the series has a slot that is not cancelled gets no second one. Organizers only."
    )
    async def add_series_dates(self, info: Info, input: AddSeriesDatesArgument) -> object:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        if (series_id := ids.parse_series_id(input.series_id)) is None:
            return refuse_id(SeriesNotFound, input.series_id)
        holidays = await load_holidays(info, input.holiday_list_id)
        if isinstance(holidays, validation.InvalidInput):
            return ADD_DATES.present(holidays, ResultView(organizer))
        dates = NewDates(
            series_id, frozenset(input.start_times), input.on_conflict, input.allow_past, holidays
        )
        outcome = await series_dates.add(info.context.services, dates, organizer.user_id, key)
        return ADD_DATES.present(outcome, ResultView(organizer))

    @REMOVE_DATES.mutation(
        "Remove slots from a series, all of them or none. Slots that nobody has booked "
        "or waited for are deleted; others can only be cancelled. Organizers only."
    )
    async def remove_series_dates(self, info: Info, input: RemoveSeriesDatesArgument) -> object:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        if (series_id := ids.parse_series_id(input.series_id)) is None:
            return refuse_id(SeriesNotFound, input.series_id)
        slot_ids: dict[SlotId, None] = {}  # each once, in their order
        for global_id in input.slot_ids:
            if (slot_id := ids.parse_slot_id(global_id)) is None:
                return refuse_id(SlotNotFound, global_id)
            slot_ids[slot_id] = None
        result = await series_dates.remove(
            info.context.services,
            series_id,
            tuple(slot_ids),
            organizer.user_id,
            key,
            cancel_booked=input.cancel_booked,
        )
        return REMOVE_DATES.present(result.outcome, ResultView(organizer, result.slots))
