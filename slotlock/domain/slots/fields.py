"""The attributes of a slot: what each is called in MongoDB and by clients, and who may change it.

Documents, audit notes and the update that clients send are derived from this table.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlotField:
    """One attribute of a slot.

    `stored_name` is the field of the document; None for the timetable, which is stored as meetings.
    `api_name` is the field of the inputs and of audit notes; None for bookkeeping, which has none.
    """

    name: str
    stored_name: str | None
    api_name: str | None
    is_editable: bool = False
    is_nullable: bool = False


SLOT_FIELDS = (
    SlotField("title", "title", "title", is_editable=True),
    SlotField("start", "start", "startTime", is_editable=True),
    SlotField("end", "end", "endTime", is_editable=True),
    SlotField("meetings", "meetings", "meetings"),
    SlotField("timetable", None, "timetable", is_editable=True, is_nullable=True),
    SlotField("time_zone", "timeZone", "timeZone", is_editable=True),
    SlotField("location", "location", "location", is_editable=True, is_nullable=True),
    SlotField("kind", "kind", "kind", is_editable=True),
    SlotField("status", "status", "status"),
    SlotField("capacity", "capacity", "capacity", is_editable=True),
    SlotField("hold_minutes", "holdMinutes", "holdMinutes", is_editable=True),
    SlotField(
        "cancel_cutoff_minutes", "cancelCutoffMinutes", "cancelCutoffMinutes", is_editable=True
    ),
    SlotField("waitlist_capacity", "waitlistCapacity", "waitlistCapacity", is_editable=True),
    SlotField(
        "waitlist_offer_minutes",
        "waitlistOfferMinutes",
        "waitlistOfferMinutes",
        is_editable=True,
        is_nullable=True,
    ),
    SlotField("choice_group", "choiceGroup", "choiceGroup", is_nullable=True),
    SlotField("group_limits", "groupLimits", "groupLimits", is_editable=True),
    SlotField("resource", "resource", "resource", is_editable=True, is_nullable=True),
    SlotField("cancellation", "cancellation", None, is_nullable=True),
    SlotField("terms", "campaign", None, is_nullable=True),
    SlotField("series_id", "series", None, is_nullable=True),
    SlotField("version", "version", None),
    SlotField("changed_at", "changedAt", None),
    SlotField("revision", "revision", None),
    SlotField("revised_at", "revisedAt", None, is_nullable=True),
)
EDITABLE_FIELDS = tuple(field for field in SLOT_FIELDS if field.is_editable)
