"""The statistics of a campaign, as organizers see them."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import strawberry
from strawberry import Parent, field

from slotlock.domain.reports import campaign_reports
from slotlock.domain.shared.pagination import Page, Position
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import DEFAULT_FIRST, After, Connection, First, page_start
from slotlock.graphql.core.cursors import BY_NAME, BY_TIME, ListCursors
from slotlock.graphql.slots.slot_types import Slot, load_slot

Item = TypeVar("Item")
SortKey = TypeVar("SortKey", str, tuple[datetime, str])

SLOT_STATISTICS = ListCursors(
    "campaignStatistics.slots", BY_TIME, lambda slot: Position(slot.start, slot.slot_id)
)
GROUP_STATISTICS = ListCursors("campaignStatistics.groups", BY_NAME, lambda found: found.group)


@strawberry.type(description="The statistics of one published slot of a campaign.")
class SlotStatistics:
    places: int = field(description="The number of places.")
    taken: int = field(description="The number of taken places, including holds.")
    held: int = field(description="The number of places that are taken by holds.")
    waiting: int = field(description="The number of users on the waiting list.")
    checked_in: int = field(description="The number of bookings whose users are checked in.")
    no_shows: int = field(description="The number of bookings that are marked as no-shows.")
    full_since: datetime | None = field(
        description="Since when all places are taken; null while one is free."
    )

    @field(description="The slot that the statistics are about.")
    async def slot(found: Parent[campaign_reports.SlotStatistics], info: Info) -> Slot | None:
        return await load_slot(info, found.slot_id)


@strawberry.type(
    description="The statistics of one group in a campaign. Bookings and waiting list entries "
    "count for the groups that the user had when they were made."
)
class GroupStatistics:
    group: str = field(description="The name of the group.")
    user_count: int = field(description="How many current members of the group are eligible.")
    booked: int = field(description="How many users of the group have at least one booking.")
    bookings: int = field(description="How many bookings the users of the group have.")
    waiting: int = field(description="How many waiting list entries the users of the group have.")


@strawberry.type(description="The bookings of a campaign during one interval.")
class StatisticsPoint:
    at: datetime = field(description="When the interval starts.")
    booked: int = field(
        description="How many places were taken during the interval, including moves to a slot."
    )
    given_back: int = field(
        description="How many places became free during the interval: cancelled, expired, or moved "
        "to another slot."
    )
    taken: int = field(description="How many places are taken at the end of the interval.")


@strawberry.type(description="The minute of a campaign with the most bookings.")
class BookingPeak:
    at: datetime = field(description="When the minute starts.")
    booked: int = field(description="How many bookings were made in the minute.")

    @field(description="How many bookings were made in a second of the minute, on average.")
    def per_second(found: Parent[campaign_reports.BookingPeak]) -> float:
        return found.booked / 60


@strawberry.type(
    description="The statistics of a campaign at one point in time. Only published slots count; "
    "expired holds do not."
)
class CampaignStatistics:
    at: datetime = field(description="The time that the statistics describe.")
    slot_count: int = field(description="The number of published slots.")
    places: int = field(description="The number of places in all slots.")
    taken: int = field(description="The number of taken places, including holds.")
    held: int = field(description="The number of places that are taken by holds.")
    free: int = field(
        description="The number of places that are not taken. Some may go to users on a waiting "
        "list next."
    )
    waiting: int = field(
        description="The number of waiting list entries. A user can have several, one per slot."
    )
    checked_in: int = field(description="The number of bookings whose users are checked in.")
    no_shows: int = field(description="The number of bookings that are marked as no-shows.")
    user_count: int = field(description="The number of users with at least one booking.")
    time_series: list[StatisticsPoint] | None = field(
        description="The bookings over time, if the argument `timeSeries` requests them."
    )

    @field(
        description="The minute with the most bookings; null without a booking. Bookings that "
        "ended count, too. Requests that were refused are not counted.",
        graphql_type=BookingPeak | None,
    )
    async def peak(found: Parent[campaign_reports.CampaignStatistics], info: Info) -> object:
        users = info.context.services.eligible_users
        return await users.find_peak(found.terms.campaign_id, found.at)

    @field(
        description="How many users may book in the campaign and have no booking in it, at most "
        "100,000. If the campaign is for everyone, only members count."
    )
    async def without_booking(
        found: Parent[campaign_reports.CampaignStatistics], info: Info
    ) -> int:
        return await info.context.services.eligible_users.count_unplaced(found.terms, found.at)

    @field(description="The statistics of each slot, by start.")
    def slots(
        found: Parent[campaign_reports.CampaignStatistics],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Connection[SlotStatistics]:
        start = page_start(SLOT_STATISTICS, first, after)
        size, position = start
        page = _page_after(
            found.slots,
            _slot_sort_key,
            size,
            (position.start, position.id) if position else None,
        )
        return Connection[SlotStatistics](page, page.items, SLOT_STATISTICS, after)

    @field(
        description="The statistics of each group that is eligible, has a booking or waits, by "
        "name."
    )
    def groups(
        found: Parent[campaign_reports.CampaignStatistics],
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> Connection[GroupStatistics]:
        page = _page_after(
            found.groups, _group_sort_key, *page_start(GROUP_STATISTICS, first, after)
        )
        return Connection[GroupStatistics](page, page.items, GROUP_STATISTICS, after)


def _slot_sort_key(statistics: campaign_reports.SlotStatistics) -> tuple[datetime, str]:
    return statistics.start, statistics.slot_id


def _group_sort_key(statistics: campaign_reports.GroupStatistics) -> str:
    return statistics.group


def _page_after(
    items: Sequence[Item], key: Callable[[Item], SortKey], first: int, last_key: SortKey | None
) -> Page[Item]:
    """Return the items that follow the last key."""
    start = 0 if last_key is None else bisect_right(items, last_key, key=key)
    return Page.of(items[start:], first)
