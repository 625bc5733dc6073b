"""The organisers' acts on slots: create, edit, publish, call off; one, or more of a series."""

import asyncio
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
    slots = await _in_scope(desk, slot_id, scope)
    if not slots:
        return SlotNotFound(slot_id)
    each = changes_of_each(slots, slots[0], changes) if len(slots) > 1 else {slot_id: changes}
    if isinstance(each, InvalidInput):
        return each
    heads = rules.MAX_CAPACITY if "capacity" in changes else 1
    return await _keep(desk, slots, viewer, lambda slot, _: rules.edit(slot, each[slot.id]), heads)


async def publish(
    desk: Desk, slot_id: SlotId, viewer: UserId, scope: SeriesScope = SeriesScope.THIS
) -> KeepOutcome:
    """Open a draft to everyone, with a wider scope others of its series too."""
    slots = await _in_scope(desk, slot_id, scope)
    if not slots:
        return SlotNotFound(slot_id)
    return await _keep(desk, slots, viewer, lambda slot, _: rules.publish(slot))


async def call_off(
    desk: Desk, slot_id: SlotId, viewer: UserId, scope: SeriesScope = SeriesScope.THIS
) -> KeepOutcome:
    """Cancel a slot for everyone, with a wider scope others of its series too."""
    slots = await _in_scope(desk, slot_id, scope)
    if not slots:
        return SlotNotFound(slot_id)
    outcome = await _keep(
        desk,
        slots,
        viewer,
        lambda slot, now: rules.call_off(slot, viewer, now),
        heads=rules.MAX_WAITLIST,
    )
    for slot in slots if isinstance(outcome, SlotKept) else ():
        if roster := await desk.slots.look_at_roster(slot.id):
            desk.announcements.poke(roster.bookings)
    return outcome


async def _in_scope(desk: Desk, slot_id: SlotId, scope: SeriesScope) -> list[Slot]:
    """The slot and the others of its series that a change is for; the one that is named first."""
    now = desk.now()
    this = await desk.slots.look(Look(slot_id, now))
    if this is None:
        return []
    if scope is SeriesScope.THIS or this.series_id is None:
        return [this]
    found = in_scope(await desk.slots.of_series(this.series_id, now), this, scope, now)
    return [this, *(slot for slot in found if slot.id != this.id)]


async def _keep(
    desk: Desk, slots: Sequence[Slot], viewer: UserId, rule: Rule, heads: int = 1
) -> KeepOutcome:
    """The outcome for the first of these slots, once all have been changed by the rule, or none."""
    ids = [slot.id for slot in slots]
    for _ in range(EDIT_TRIES):
        now = desk.now()
        looks = (Look(slot_id, now, (viewer,)) for slot_id in ids)
        found = [slot for slot in await asyncio.gather(*map(desk.slots.look, looks)) if slot]
        moved = [after for before in found if _moves(before, after := rule(before, now)[0])]
        others, guards = await neighbours(desk, moved)
        request = Request(
            _on_all(ids, rule, [slot for slot in others if slot.id not in ids], moved),
            people=(viewer,),
            heads=heads,
            guards=guards,
            note=lambda change: slot_note(change.before, change.after, viewer),
        )
        news: list[Availability] = []
        (outcome,) = await serve(desk, ids, [request], news, tries=1)
        for state in news:
            desk.announcements.publish(state)
        if not isinstance(outcome, Locked):
            return outcome.kept[0] if isinstance(outcome, SlotsKept) else _refused(outcome)
    return locked(ids[0])


def _refused(outcome: Any) -> KeepOutcome:
    refusal: KeepOutcome = outcome
    return refusal


def _on_all(
    ids: Sequence[SlotId], rule: Rule, others: Sequence[Slot], moved: Sequence[Slot]
) -> Callable[[Slots, datetime], tuple[Slots, SlotsKept | KeepOutcome]]:
    planned = {slot.id: slot for slot in moved}

    def on_all(slots: Slots, now: datetime) -> tuple[Slots, SlotsKept | KeepOutcome]:
        after, kept = dict(slots), list[SlotKept]()
        for slot_id in ids:
            if slot_id not in slots:
                return slots, SlotNotFound(slot_id)
            changed, outcome = rule(slots[slot_id], now)
            if not isinstance(outcome, SlotKept):
                return slots, outcome
            if _moves(slots[slot_id], changed) and _use(changed) != _use(
                planned.get(slot_id, slots[slot_id])
            ):
                return slots, locked(slot_id)  # changed since the others were looked at
            after[slot_id] = changed
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
