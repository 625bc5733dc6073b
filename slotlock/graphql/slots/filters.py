"""The filter of the list of slots."""

from datetime import datetime

import strawberry
from strawberry import field

from slotlock.domain.booking.availability import sees_hidden
from slotlock.domain.shared.text import normalize_line, strip_blanks
from slotlock.domain.slots.listing import SlotFilter
from slotlock.graphql.context import Context
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_period
from slotlock.graphql.core.enums import SlotKind, SlotStatus
from slotlock.graphql.core.errors import bad_input

MAX_SEARCH_LENGTH = 200


@strawberry.input(description="The slots to find. A field that is left out matches every slot.")
class SlotsFilter:
    include_past: bool = field(
        default=False, description="Whether to list slots that are over as well."
    )
    starts_from: datetime | None = field(
        default=None, description="Only slots that start at this time or later."
    )
    starts_before: datetime | None = field(
        default=None, description="Only slots that start before this time."
    )
    meets_from: datetime | None = field(
        default=None,
        description="Only slots with a meeting that ends after this time. With `meetsBefore`, it "
        "is a meeting that overlaps the time from `meetsFrom` to `meetsBefore`.",
    )
    meets_before: datetime | None = field(
        default=None, description="Only slots with a meeting that starts before this time."
    )
    text: str | None = field(
        default=None,
        description="Words or prefixes of words that all occur in the title or the location. "
        "Capitals, accents and variants of characters do not matter. Of scripts without "
        "blanks, such as Chinese or Thai, and of Korean, any part of the text counts as a word.",
    )
    kind: SlotKind | None = field(default=None, description="Only slots of this kind.")
    campaign_id: strawberry.ID | None = field(
        default=None, description="Only slots of this campaign."
    )
    series_id: strawberry.ID | None = field(default=None, description="Only slots of this series.")
    resource: str | None = field(
        default=None,
        description="Only slots that occupy this resource. The name may differ in capitals.",
    )
    choice_group: str | None = field(
        default=None, description="Only slots of exactly this choice group."
    )
    only_with_places_left: bool = field(
        default=False, description="Only slots with at least one free place."
    )
    bookable_by_me: bool = field(
        default=False,
        description="Only published slots that the caller may book now, as `Slot.myEligibility` "
        "says. A page may have fewer slots than `first`, or none, although more follow.",
    )
    led_by_me: bool = field(
        default=False,
        description="Only published slots that the caller leads, as `Slot.isLedByMe` says.",
    )
    status: SlotStatus = field(
        default=SlotStatus.PUBLISHED,
        description="Only slots with this status. Only organizers can find drafts.",
    )

    def to_domain(self, context: Context) -> SlotFilter:
        """Convert the filter to the domain's. Errors: BAD_USER_INPUT, FORBIDDEN for drafts."""
        if self.status is SlotStatus.DRAFT:
            context.require_organizer()
        if self.bookable_by_me and self.status is not SlotStatus.PUBLISHED:
            raise bad_input("bookableByMe", "`bookableByMe` finds published slots only.")
        if self.led_by_me and self.status is not SlotStatus.PUBLISHED:
            raise bad_input("ledByMe", "`ledByMe` finds published slots only.")
        campaign_id = ids.parse_campaign_id(self.campaign_id or "")
        series_id = ids.parse_series_id(self.series_id or "")
        if self.campaign_id is not None and campaign_id is None:
            raise bad_input("campaignId", "There is no such campaign.")
        if self.series_id is not None and series_id is None:
            raise bad_input("seriesId", "There is no such series.")
        require_valid_period("startsFrom", self.starts_from, "startsBefore", self.starts_before)
        require_valid_period("meetsFrom", self.meets_from, "meetsBefore", self.meets_before)
        viewer = context.viewer
        text = strip_blanks(self.text or "")
        if len(text) > MAX_SEARCH_LENGTH:
            raise bad_input("text", f"`text` has at most {MAX_SEARCH_LENGTH} characters.")
        return SlotFilter(
            status=self.status,
            include_past=self.include_past,
            starts_from=self.starts_from,
            starts_before=self.starts_before,
            meets_from=self.meets_from,
            meets_before=self.meets_before,
            text=text or None,
            kind=self.kind,
            campaign_id=campaign_id,
            series_id=series_id,
            resource=_normalized(self.resource),
            choice_group=_normalized(self.choice_group),
            include_unpublished_campaigns=sees_hidden(viewer) and not self.led_by_me,
            led_by=context.caller.user_id if self.led_by_me else None,
            only_with_places_left=self.only_with_places_left,
        )


def _normalized(name: str | None) -> str | None:
    return None if name is None else normalize_line(name)
