"""Adding dates to a series of slots, and removing dates from it."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import (
    KeyReused,
    Locked,
    SeriesNotFound,
    SlotNotFound,
)
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.rules.expiry import as_of
from slotlock.domain.booking.slot import MAX_WAITLIST_CAPACITY, SeriesId
from slotlock.domain.booking.slot_change import SlotChange
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.recurrence_rules import MAX_OCCURRENCES
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.series import OnConflict, SeriesConflicts, split_conflicts
from slotlock.domain.slots.series_dates import (
    DatesAdded,
    DatesRemoved,
    PlannedDates,
    PlannedRemoval,
    SeriesDatesSummary,
    SlotsHaveBookings,
    plan_added_dates,
    plan_removal,
    to_removed,
)
from slotlock.domain.slots.slot_outcomes import SlotNotPublished, SlotsSaved
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    Precondition,
    ResourceVersion,
    WriteSet,
    check_written,
)
from slotlock.services.batch_decision import decide_batch
from slotlock.services.commands.commit import (
    audit_notes,
    load_slots,
    locked_refusal,
    publish_changes,
    write_set,
)
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slots.deletion import deletion_notes, publish_deletions
from slotlock.services.slots.edit_command import EditSlots
from slotlock.services.slots.editing import (
    cancellation_by,
    creation_notes,
    publish_cancelled_bookings,
    resource_rivals,
)
from slotlock.services.slots.series_creation import find_conflicting_slots

AddDatesRefusal = SeriesNotFound | SeriesConflicts | InvalidInput | Locked | KeyReused
AddDatesOutcome = DatesAdded | AddDatesRefusal
RemoveDatesRefusal = (
    SeriesNotFound
    | SlotNotFound
    | SlotsHaveBookings
    | SlotNotPublished
    | InvalidInput
    | Locked
    | KeyReused
)
RemoveDatesOutcome = DatesRemoved | RemoveDatesRefusal


@value_object
class NewDates:
    """The dates that an organizer adds to a series."""

    series_id: SeriesId
    starts: frozenset[datetime]
    on_conflict: OnConflict = OnConflict.STRICT
    allow_past: bool = False
    holidays: frozenset[date] = frozenset()


async def add(
    services: Services, dates: NewDates, organizer_id: UserId, key_text: str | None = None
) -> AddDatesOutcome:
    """Add slots to a series: on all of these dates, or on those without a conflict.

    The write depends on the number of earlier additions, so that two requests for one date create
    one slot. Return what the same request with this key has added, if it has.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    days = sorted(dates.starts), sorted(dates.holidays)
    parts = (dates.series_id, *days, dates.on_conflict, dates.allow_past)
    key = IdempotencyKey.for_creation(organizer_id, key_text, "addSeriesDates", *parts)
    ids = [new_slot_id() for _ in range(MAX_OCCURRENCES)]
    refusal: AddDatesRefusal = locked_refusal(ids[0])
    for _ in attempts():
        if stored := await _find_added(services, key):
            return stored
        now = services.now()
        # Before the slots: what another request adds afterwards makes the version outdated.
        version = await services.slots.find_series_version(dates.series_id)
        series = await services.slots.find_by_series(dates.series_id, now)
        if version is None or not series:
            return SeriesNotFound(dates.series_id)
        planned = plan_added_dates(
            series,
            dates.starts,
            ids,
            now,
            allow_past=dates.allow_past,
            holidays=dates.holidays,
        )
        if isinstance(planned, InvalidInput):
            return planned
        placed = await _with_current_terms(services, planned, now)
        if placed is None:
            continue
        states, campaign_versions = placed
        slots = [state.slot for state in states]
        rivals, resource_versions = await resource_rivals(services, slots)
        if unknown := _unknown_resource(resource_versions):
            return unknown
        free, conflicts = split_conflicts(states, rivals)
        if conflicts and (not free or dates.on_conflict is OnConflict.STRICT):
            refusal = SeriesConflicts(conflicts)
            break
        added = DatesAdded(
            dates.series_id, free, planned.existing, conflicts, planned.skipped_holidays
        )
        if not free and key is None:
            return added
        summary = SeriesDatesSummary.from_added(added)
        changes = WriteSet(
            (),
            idempotency_records=(to_record(key, summary, now),) if key else (),
            new_slots=free,
            preconditions=(version, *campaign_versions, *resource_versions),
            audit_notes=creation_notes(free, organizer_id),
        )
        if check_written(await services.slot_writer.commit(changes)):
            return added
    return await _find_added(services, key) or refusal


def _unknown_resource(versions: Iterable[ResourceVersion]) -> InvalidInput | None:
    """Return the problem of a resource that was deleted after the copied slot had used it."""
    for resource in versions:
        if resource.version is None:
            problem = ProblemCode.RESOURCE_DELETED.problem(name=resource.name)
            return InvalidInput((FieldProblem("startTimes", problem),))
    return None


async def _with_current_terms(
    services: Services, planned: PlannedDates, now: datetime
) -> tuple[tuple[SlotState, ...], tuple[Precondition, ...]] | None:
    """Return the new slots with their descriptions and the terms of their campaigns now.

    None if a campaign was deleted, which means that the copied slot was deleted before.
    """
    descriptions = await services.descriptions.find_of_slots(list(set(planned.template_ids)))
    terms = {slot.terms.campaign_id: slot.terms for slot in planned.slots if slot.terms}
    for campaign_id in terms:
        campaign = await services.campaigns.find(campaign_id)
        if campaign is None:
            return None
        terms[campaign_id] = campaign.terms
    states = tuple(
        SlotState(
            replace(slot, terms=terms[slot.terms.campaign_id]) if slot.terms else slot,
            version=1,
            changed_at=now,
            change=SlotChange(description=descriptions.get(template_id)),
        )
        for slot, template_id in zip(planned.slots, planned.template_ids, strict=True)
    )
    return states, tuple(CampaignVersion(id_, each.version) for id_, each in terms.items())


async def _find_added(
    services: Services, key: IdempotencyKey | None
) -> DatesAdded | KeyReused | None:
    """Return what a request of the key has added, with the slots as they are now."""
    stored = await find_created(services, key, SeriesDatesSummary)
    if stored is None:
        return None
    if isinstance(stored.outcome, KeyReused):
        return stored.outcome
    summary, now = stored.outcome, services.now()
    slots, others = await asyncio.gather(
        services.slots.find_by_series(summary.series_id, now),
        find_conflicting_slots(services, summary.skipped, now),
    )
    return summary.with_slots(slots, others)


async def remove(
    services: Services,
    series_id: SeriesId,
    slot_ids: tuple[SlotId, ...],
    organizer_id: UserId,
    key_text: str | None = None,
    *,
    cancel_booked: bool = False,
) -> CommandResult[RemoveDatesOutcome]:
    """Remove slots from a series, all or none.

    A slot that nobody has booked or waited for is deleted. With `cancel_booked`, the others are
    cancelled. The write depends on the versions of the slots, like an edit. Return what the same
    request with this key has removed, if it has.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    parts = (series_id, sorted(slot_ids), cancel_booked)
    key = IdempotencyKey.for_creation(organizer_id, key_text, "removeSeriesDates", *parts)
    refusal: CommandResult[RemoveDatesOutcome] | None = None
    for _ in attempts():
        if stored := await _find_removed(services, key):
            return stored
        now = services.now()
        plan = await _plan_removal(services, series_id, slot_ids, now, cancel_booked=cancel_booked)
        if isinstance(plan, CommandResult):
            refusal = plan
            break
        command = EditSlots(
            organizer_id,
            cancellation_by(organizer_id),
            tuple(state.slot for state in plan.cancelled),
            rescheduled=(),
            rivals=(),
            waitlist_depth=MAX_WAITLIST_CAPACITY,
        )
        decided = decide_batch(await load_slots(services, [command], now), [command], now)
        outcome = decided.decisions[0].outcome
        if isinstance(outcome, SlotNotPublished):
            refusal = CommandResult(outcome, decided.slots)
            break
        if not isinstance(outcome, SlotsSaved):
            continue  # a slot has changed since the removal was planned
        removed = to_removed(series_id, plan)
        if decided.updates or plan.deleted or key is not None:
            changes = replace(
                write_set([command], decided, now),
                idempotency_records=(to_record(key, removed, now),) if key else (),
                deleted_slots=plan.deleted,
                audit_notes=(
                    *audit_notes(command, decided.updates),
                    *deletion_notes(plan.deleted, organizer_id, now),
                ),
            )
            if not check_written(await services.slot_writer.commit(changes)):
                continue
            services.free_place_hints.observe(decided.slots.values())
            for availability in publish_changes(services, decided.updates):
                services.slot_events.publish(availability)
            publish_deletions(services, plan.deleted, now)
            await publish_cancelled_bookings(services, outcome)
        unchanged = {state.id: as_of(state, now) for state in plan.cancelled_earlier}
        return CommandResult(removed, {**unchanged, **decided.slots})
    # Another request of the key may have removed the slots, so that this one does not find them.
    stored = await _find_removed(services, key)
    return stored or refusal or CommandResult(locked_refusal(slot_ids[0]))


async def _find_removed(
    services: Services, key: IdempotencyKey | None
) -> CommandResult[RemoveDatesOutcome] | None:
    """Return what a request of the key has removed, with the cancelled slots as they are now."""
    stored = await find_created(services, key, DatesRemoved)
    if stored is None:
        return None
    if isinstance(stored.outcome, KeyReused):
        return CommandResult(stored.outcome)
    removed, now = stored.outcome, services.now()
    found = await services.slots.find_by_series(removed.series_id, now)
    slots = {state.id: as_of(state, now) for state in found if state.id in removed.cancelled_ids}
    still_stored = tuple(slot_id for slot_id in removed.cancelled_ids if slot_id in slots)
    return CommandResult(replace(removed, cancelled_ids=still_stored), slots)


async def _plan_removal(
    services: Services,
    series_id: SeriesId,
    slot_ids: Sequence[SlotId],
    now: datetime,
    *,
    cancel_booked: bool,
) -> PlannedRemoval | CommandResult[RemoveDatesOutcome]:
    """Plan the removal from the current state of the slots, or return why nothing is removed."""
    if not 1 <= len(slot_ids) <= MAX_OCCURRENCES:
        problem = ProblemCode.SLOT_COUNT.problem(maximum=MAX_OCCURRENCES)
        return CommandResult(InvalidInput((FieldProblem("slotIds", problem),)))
    series = await services.slots.find_by_series(series_id, now)
    if not series:
        return CommandResult(SeriesNotFound(series_id))
    by_id = {state.id: state for state in series}
    if missing := next((slot_id for slot_id in slot_ids if slot_id not in by_id), None):
        return CommandResult(SlotNotFound(missing))
    slots = [state for state in series if state.id in slot_ids]
    # After the slots: a booking that ends later gives its slot a new version.
    used = await services.ended_bookings.find_slots_with_history(slot_ids)
    plan = plan_removal(slots, used, cancel_booked=cancel_booked)
    if isinstance(plan, SlotsHaveBookings):
        return CommandResult(plan, {state.id: as_of(state, now) for state in slots})
    return plan
