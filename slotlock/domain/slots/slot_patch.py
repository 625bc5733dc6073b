"""The draft of a new slot, and the changes to a slot, as an organizer enters them."""

from dataclasses import fields, replace
from datetime import datetime

from slotlock.domain.booking.slot import SLOT_FACTS, SeriesId, Slot, SlotKind
from slotlock.domain.campaigns.campaign import normalize_group_limits
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit, SlotAdmission
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.value_object import value_object


@value_object
class SlotDraft:
    """The fields of a new slot, with either a start and an end or a timetable.

    Only with `allow_past` may it lie wholly in the past.
    """

    title: str
    start: datetime | None
    end: datetime | None
    time_zone: str
    capacity: int
    location: str | None
    kind: SlotKind
    published: bool
    hold_minutes: int = 5
    cancel_cutoff_minutes: int = 0
    waitlist_capacity: int = 100
    waitlist_offer_minutes: int | None = None
    choice_group: str | None = None
    group_limits: tuple[GroupLimit, ...] = ()
    timetable: Timetable | None = None
    resource: str | None = None
    several_resources: tuple[str, ...] = ()
    terms: CampaignTerms | None = None
    series_id: SeriesId | None = None
    admission: SlotAdmission = SlotAdmission.ANY
    description: str | None = None
    hold_cooldown_minutes: int = 0
    reminder_minutes: int | None = None
    meeting_url: str | None = None
    allow_past: bool = False


@value_object
class SlotPatch:
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
    reminder_minutes: int | Unchanged | None = UNCHANGED
    meeting_url: str | Unchanged | None = UNCHANGED
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
        """Return the slot with the new values in canonical spelling, and its old meetings."""
        facts = {
            each.name: each.normalize(
                new_or_current(getattr(self, each.name), getattr(slot, each.name))
            )
            for each in CHANGEABLE_FACTS
        }
        old_resources = slot.several_resources if self.resource is UNCHANGED else ()
        return replace(
            slot,
            start=new_or_current(self.start, slot.start),
            end=new_or_current(self.end, slot.end),
            group_limits=normalize_group_limits(
                new_or_current(self.group_limits, slot.group_limits)
            ),
            resource=normalize_name(new_or_current(self.resource, slot.resource)),
            several_resources=normalize_names(
                new_or_current(self.several_resources, old_resources)
            ),
            **facts,
        )


_CHANGEABLE = {each.name for each in fields(SlotPatch)}
CHANGEABLE_FACTS = tuple(each for each in SLOT_FACTS if each.name in _CHANGEABLE)


def normalize_name(name: str | None) -> str | None:
    """Return the name of a resource in canonical spelling; None for an empty one."""
    return normalize_line(name or "") or None


def normalize_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of resources in canonical spelling."""
    return tuple(map(normalize_line, names))
