"""The organisers' acts on slots: create, edit, publish, call off; one, or more of a series."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from slotlock.desk.act import locked, serve
from slotlock.desk.deciding import Request, Slots
from slotlock.desk.desk import Desk
from slotlock.domain import keeping as rules
from slotlock.domain.availability import Availability
from slotlock.domain.bookings import SlotId
from slotlock.domain.campaigns import CampaignNotFound
from slotlock.domain.notes import Note, slot_note
from slotlock.domain.outcomes import KeepOutcome, SlotKept, SlotsKept
from slotlock.domain.people import UserId
from slotlock.domain.refusals import InvalidInput, Locked, SlotNotFound
from slotlock.domain.resources import Occupancy, ResourceTaken, uses_resource
from slotlock.domain.series import SeriesScope, changes_of_each, in_scope
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignId
from slotlock.stores.guards import CampaignSeen, Guard
from slotlock.stores.ids import new_slot_id
from slotlock.stores.slots import Look
from slotlock.stores.writes import Changes

# An edit takes no lock, so that a rush cannot keep its organiser out; each try is guarded by
# version, and between two bookings of one slot lies more time than a try takes.
EDIT_TRIES = 20

Rule = Callable[[Slot, datetime], tuple[Slot, KeepOutcome]]
# What becomes of each of these slots, as they are now; the one that is named is the first.
Plan = Callable[[Sequence[Slot]], Rule | InvalidInput]
Created = SlotKept | InvalidInput | CampaignNotFound | ResourceTaken | Locked


@dataclass(frozen=True, slots=True)
class Placed:
    """A draft with the terms of its campaign, and what guards them."""

    draft: rules.SlotDraft
    guards: tuple[Guard, ...]


async def in_campaign(
    desk: Desk, draft: rules.SlotDraft, campaign_id: CampaignId | None
) -> Placed | CampaignNotFound:
    """A draft with the terms of the campaign that it shall belong to, if any."""
    if campaign_id is None:
        return Placed(draft, ())
    campaign = await desk.campaigns.find(campaign_id)
    if campaign is None:
        return CampaignNotFound(campaign_id)
    seen = CampaignSeen(campaign_id, campaign.terms.version)
    return Placed(replace(draft, terms=campaign.terms), (seen,))


async def create(
    desk: Desk, draft: rules.SlotDraft, by: UserId, campaign_id: CampaignId | None = None
) -> Created:
    """Create a slot, published at once or as a draft, perhaps in a campaign."""
    slot_id = new_slot_id()
    for _ in range(EDIT_TRIES):
        placed = await in_campaign(desk, draft, campaign_id)
        if isinstance(placed, CampaignNotFound):
            return placed
        outcome = rules.create(slot_id, placed.draft, desk.now())
        if isinstance(outcome, InvalidInput):
            return outcome
        others, seen = await neighbours(desk, [outcome.slot])
        if taken := Occupancy.of(others).clash(outcome.slot):
            return taken
        guards = (*placed.guards, *seen)
        new = (outcome.slot,)
        if await desk.writes.commit(Changes((), new=new, guards=guards, notes=created(new, by))):
            return outcome
    return locked(slot_id)


def created(slots: Sequence[Slot], by: UserId) -> tuple[Note, ...]:
    """What is noted of new slots."""
    return tuple(note for slot in slots if (note := slot_note(None, slot, by)))


async def edit(
    desk: Desk,
    slot_id: SlotId,
    changes: Mapping[str, Any],
    viewer: UserId,
    scope: SeriesScope = SeriesScope.THIS,
) -> KeepOutcome:
    """Change the named fields of a slot. Places that are added go to those who wait.

    With a wider scope the others of its series change too, all or none; where times change, they
    move as this one does.
    """

    def plan(slots: Sequence[Slot]) -> Rule | InvalidInput:
        if len(slots) == 1:
            return lambda slot, _: rules.edit(slot, changes)
        each = changes_of_each(slots, slots[0], changes)
        if isinstance(each, InvalidInput):
            return each
        return lambda slot, _: rules.edit(slot, each[slot.id])

    heads = rules.MAX_CAPACITY if "capacity" in changes else 1
    return _first(await _keep(desk, slot_id, scope, viewer, plan, heads))


async def publish(
    desk: Desk, slot_id: SlotId, viewer: UserId, scope: SeriesScope = SeriesScope.THIS
) -> KeepOutcome:
    """Open a draft to everyone, with a wider scope others of its series too."""

    def plan(_: Sequence[Slot]) -> Rule:
        return lambda slot, _: rules.publish(slot)

    return _first(await _keep(desk, slot_id, scope, viewer, plan))


async def call_off(
    desk: Desk, slot_id: SlotId, viewer: UserId, scope: SeriesScope = SeriesScope.THIS
) -> KeepOutcome:
    """Cancel a slot for everyone, with a wider scope others of its series too."""

    def plan(_: Sequence[Slot]) -> Rule:
        return lambda slot, now: rules.call_off(slot, viewer, now)

    outcome = await _keep(desk, slot_id, scope, viewer, plan, heads=rules.MAX_WAITLIST)
    for kept in outcome.kept if isinstance(outcome, SlotsKept) else ():
        if roster := await desk.slots.look_at_roster(kept.slot.id):
            desk.announcements.poke(roster.bookings)
    return _first(outcome)


def _first(outcome: SlotsKept | KeepOutcome) -> KeepOutcome:
    return outcome.kept[0] if isinstance(outcome, SlotsKept) else outcome


async def _in_scope(
    desk: Desk, slot_id: SlotId, scope: SeriesScope, now: datetime
) -> Sequence[Slot]:
    """The slot and the others of its series that a change is for; the one that is named first."""
    this = await desk.slots.look(Look(slot_id, now))
    if this is None:
        return ()
    if scope is SeriesScope.THIS or this.series_id is None:
        return (this,)
    found = in_scope(await desk.slots.of_series(this.series_id, now), this, scope, now)
    return (this, *(slot for slot in found if slot.id != slot_id))


async def _keep(
    desk: Desk, slot_id: SlotId, scope: SeriesScope, viewer: UserId, plan: Plan, heads: int = 1
) -> SlotsKept | KeepOutcome:
    """The outcome for the slots in scope, the named one first, once all have changed, or none."""
    for _ in range(EDIT_TRIES):
        now = desk.now()
        seen = await _in_scope(desk, slot_id, scope, now)
        if not seen:
            return SlotNotFound(slot_id)
        rule = plan(seen)  # anew at each try: what others changed meanwhile is built on
        if isinstance(rule, InvalidInput):
            return rule
        moved = [after for before in seen if _moves(before, after := rule(before, now)[0])]
        others, guards = await neighbours(desk, moved)
        ids = [slot.id for slot in seen]
        request = Request(
            _on_all(seen, rule, [slot for slot in others if slot.id not in ids], moved),
            people=(viewer,),
            heads=heads,
            guards=guards,
            note=lambda change: slot_note(change.before, change.after, viewer),
        )
        news: list[Availability] = []
        outcome: SlotsKept | KeepOutcome
        (outcome,) = await serve(desk, ids, [request], news, tries=1)
        for state in news:
            desk.announcements.publish(state)
        if not isinstance(outcome, Locked):
            return outcome
    return locked(slot_id)


def _on_all(
    seen: Sequence[Slot], rule: Rule, others: Sequence[Slot], moved: Sequence[Slot]
) -> Callable[[Slots, datetime], tuple[Slots, SlotsKept | KeepOutcome]]:
    planned = {slot.id: slot for slot in moved}

    def on_all(slots: Slots, now: datetime) -> tuple[Slots, SlotsKept | KeepOutcome]:
        after, kept = dict(slots), list[SlotKept]()
        for before in seen:
            slot = slots.get(before.id)
            if slot is None or _planned_on(slot) != _planned_on(before):
                return slots, locked(before.id)  # changed since it was planned what each becomes
            changed, outcome = rule(slot, now)
            if not isinstance(outcome, SlotKept):
                return slots, outcome
            if _moves(slot, changed) and _use(changed) != _use(planned.get(slot.id, slot)):
                return slots, locked(slot.id)  # changed since the others were looked at
            after[slot.id] = changed
            kept.append(outcome)
        occupied = Occupancy.of((*others, *after.values()))
        for slot_id in planned:
            if taken := occupied.clash(after[slot_id]):
                return slots, taken
        return after, SlotsKept(tuple(kept))

    return on_all


def _moves(before: Slot, after: Slot) -> bool:
    """Whether a slot wants its resource at other times than before, or another one."""
    return uses_resource(after) and _use(after) != _use(before)


def _use(slot: Slot) -> tuple[Any, ...]:
    return slot.resource, slot.status, slot.times


def _planned_on(slot: Slot) -> tuple[Any, ...]:
    """What of a slot it depends on whether it is in scope, and what others of its series become."""
    return slot.status, slot.times, slot.time_zone


async def neighbours(desk: Desk, slots: Sequence[Slot]) -> tuple[Sequence[Slot], tuple[Guard, ...]]:
    """The slots that may want the resource of these at their times, and what guards that."""
    wanting = [slot for slot in slots if uses_resource(slot)]
    others: list[Slot] = []
    guards: list[Guard] = []
    for name in sorted({slot.resource for slot in wanting if slot.resource is not None}):
        theirs = [slot for slot in wanting if slot.resource == name]
        start, end = min(slot.start for slot in theirs), max(slot.end for slot in theirs)
        seen, found = await desk.resources.look(name, start, end)
        guards.append(seen)
        others += found
    return others, tuple(guards)
