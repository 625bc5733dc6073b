"""The attributes of a slot: what each is called in MongoDB and by clients.

Documents and audit notes are derived from this table. `SlotChanges` has what organizers can change.
"""

from slotlock.domain.shared.values import value_object


@value_object
class SlotField:
    """One attribute of a slot.

    `stored_name` is the field of the document. `api_name` is the field of the inputs and of audit
    notes; None for bookkeeping, which has none.
    """

    name: str
    stored_name: str
    api_name: str | None


SLOT_FIELDS = (
    SlotField("title", "title", "title"),
    SlotField("start", "start", "startTime"),
    SlotField("end", "end", "endTime"),
    SlotField("meetings", "meetings", "meetings"),
    SlotField("time_zone", "timeZone", "timeZone"),
    SlotField("location", "location", "location"),
    SlotField("kind", "kind", "kind"),
    SlotField("status", "status", "status"),
    SlotField("capacity", "capacity", "capacity"),
    SlotField("hold_minutes", "holdMinutes", "holdMinutes"),
    SlotField("hold_cooldown_minutes", "holdCooldownMinutes", "holdCooldownMinutes"),
    SlotField("cancel_cutoff_minutes", "cancelCutoffMinutes", "cancelCutoffMinutes"),
    SlotField("waitlist_capacity", "waitlistCapacity", "waitlistCapacity"),
    SlotField(
        "waitlist_offer_minutes",
        "waitlistOfferMinutes",
        "waitlistOfferMinutes",
    ),
    SlotField("choice_group", "choiceGroup", "choiceGroup"),
    SlotField("group_limits", "groupLimits", "groupLimits"),
    SlotField("resource", "resource", "resource"),
    # A list in place of the name: a query for a name finds both, in older processes, too.
    SlotField("several_resources", "resource", "resources"),
    SlotField("admission", "admission", "admission"),
    SlotField("cancellation", "cancellation", None),
    SlotField("terms", "campaign", None),
    SlotField("series_id", "series", None),
    SlotField("revision", "revision", None),
    SlotField("revised_at", "revisedAt", None),
)
