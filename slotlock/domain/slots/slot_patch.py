"""The draft of a new slot, and the changes to a slot, as an organizer enters them."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.slot import SLOT_FACTS, SeriesId, Slot, SlotKind, SlotSettings
from slotlock.domain.campaigns.campaign import normalize_group_limits
from slotlock.domain.campaigns.terms import CampaignTerms, GroupLimit
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.value_object import value_object

# Of a patch that changes no settings: what is not given counts for nothing.
NO_SETTINGS = SlotSettings("", "UTC", 1, None, SlotKind.OTHER)


@value_object
class SlotDraft:
    """The settings of a new slot, with either a start and an end or a timetable.

    Only with `allow_past` may it lie wholly in the past.
    """

    settings: SlotSettings
    start: datetime | None
    end: datetime | None
    published: bool
    group_limits: tuple[GroupLimit, ...] = ()
    timetable: Timetable | None = None
    resource: str | None = None
    several_resources: tuple[str, ...] = ()
    terms: CampaignTerms | None = None
    series_id: SeriesId | None = None
    description: str | None = None
    allow_past: bool = False


@value_object
class SlotPatch:
    """New values of the settings of a slot whose names are `given`, and of other fields.

    Only with `allow_past` may new times lie wholly in the past.
    """

    settings: SlotSettings = NO_SETTINGS
    given: frozenset[str] = frozenset()
    start: datetime | Unchanged = UNCHANGED
    end: datetime | Unchanged = UNCHANGED
    timetable: Timetable | Unchanged | None = UNCHANGED
    group_limits: tuple[GroupLimit, ...] | Unchanged = UNCHANGED
    resource: str | Unchanged | None = UNCHANGED
    several_resources: tuple[str, ...] | Unchanged = UNCHANGED
    description: str | Unchanged | None = UNCHANGED
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
        settings = {
            each.name: each.normalize(getattr(self.settings, each.name))
            for each in SLOT_FACTS
            if each.name in self.given
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
            **settings,
        )


def normalize_name(name: str | None) -> str | None:
    """Return the name of a resource in canonical spelling; None for an empty one."""
    return normalize_line(name or "") or None


def normalize_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of resources in canonical spelling."""
    return tuple(map(normalize_line, names))
