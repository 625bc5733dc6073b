"""The fields of a slot that organizers can change."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.slot import Slot, SlotKind
from slotlock.domain.campaigns.terms import GroupLimit, SlotAdmission
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.changes import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.values import value_object


@value_object
class SlotChanges:
    """New values of a slot's fields, which are those of `SlotDraft`.

    Only with `allow_past` may new times lie wholly in the past.
    """

    title: str | Unchanged = UNCHANGED
    start: datetime | Unchanged = UNCHANGED
    end: datetime | Unchanged = UNCHANGED
    timetable: Timetable | Unchanged | None = UNCHANGED
    time_zone: str | Unchanged = UNCHANGED
    location: str | Unchanged | None = UNCHANGED
    kind: SlotKind | Unchanged = UNCHANGED
    capacity: int | Unchanged = UNCHANGED
    hold_minutes: int | Unchanged = UNCHANGED
    cancel_cutoff_minutes: int | Unchanged = UNCHANGED
    waitlist_capacity: int | Unchanged = UNCHANGED
    waitlist_offer_minutes: int | Unchanged | None = UNCHANGED
    group_limits: tuple[GroupLimit, ...] | Unchanged = UNCHANGED
    resource: str | Unchanged | None = UNCHANGED
    several_resources: tuple[str, ...] | Unchanged = UNCHANGED
    admission: SlotAdmission | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
    hold_cooldown_minutes: int | Unchanged = UNCHANGED
    allow_past: bool = False

    @property
    def new_resources(self) -> tuple[str, ...]:
        """The names of the resources that the edit gives the slot; none if it changes none."""
        if isinstance(self.resource, Unchanged) or self.resource is None:
            return ()
        several = new_or_current(self.several_resources, ())
        return several or (self.resource,)

    @property
    def has_new_times(self) -> bool:
        """Whether a new start or end is given."""
        return self.start is not UNCHANGED or self.end is not UNCHANGED

    def apply_to(self, slot: Slot) -> Slot:
        """Return the slot with the new values, and the meetings that it had."""
        return replace(
            slot,
            title=new_or_current(self.title, slot.title),
            start=new_or_current(self.start, slot.start),
            end=new_or_current(self.end, slot.end),
            time_zone=new_or_current(self.time_zone, slot.time_zone),
            location=new_or_current(self.location, slot.location),
            kind=new_or_current(self.kind, slot.kind),
            capacity=new_or_current(self.capacity, slot.capacity),
            hold_minutes=new_or_current(self.hold_minutes, slot.hold_minutes),
            cancel_cutoff_minutes=new_or_current(
                self.cancel_cutoff_minutes, slot.cancel_cutoff_minutes
            ),
            waitlist_capacity=new_or_current(self.waitlist_capacity, slot.waitlist_capacity),
            waitlist_offer_minutes=new_or_current(
                self.waitlist_offer_minutes, slot.waitlist_offer_minutes
            ),
            group_limits=new_or_current(self.group_limits, slot.group_limits),
            resource=new_or_current(self.resource, slot.resource),
            several_resources=new_or_current(
                self.several_resources,
                slot.several_resources if self.resource is UNCHANGED else (),
            ),
            admission=new_or_current(self.admission, slot.admission),
            description=self.description,
            hold_cooldown_minutes=new_or_current(
                self.hold_cooldown_minutes, slot.hold_cooldown_minutes
            ),
        )
