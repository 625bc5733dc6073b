"""The statistics of a campaign, as organizers see them."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Self, TypeVar

import strawberry
from strawberry import field

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.reports import campaign_reports
from slotlock.domain.shared.pagination import Position
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import (
    decode_name,
    decode_position,
    encode_cursor,
    encode_position,
)
from slotlock.graphql.slots.types import Slot, load_slot

Item = TypeVar("Item")
SortKey = TypeVar("SortKey", str, tuple[datetime, str])

SLOT_STATISTICS_CURSOR = "campaignStatistics.slots"
GROUP_STATISTICS_CURSOR = "campaignStatistics.groups"


@strawberry.type(description="The statistics of one published slot of a campaign.")
class SlotStatistics:
    places: int = field(description="The number of places.")
    taken: int = field(description="The number of taken places, including holds.")
    held: int = field(description="The number of places that are taken by holds.")
    waiting: int = field(description="The number of users on the waiting list.")
    checked_in: int = field(description="The number of bookings whose users are checked in.")
    no_shows: int = field(description="The number of bookings that are marked as no-shows.")
    slot_id: strawberry.Private[SlotId]

    @field(description="The slot that the statistics are about.")
    async def slot(self, info: Info) -> Slot | None:
        return await load_slot(info, self.slot_id)

    @classmethod
    def from_domain(cls, statistics: campaign_reports.SlotStatistics) -> Self:
        """Show the statistics of a slot."""
        return cls(
            places=statistics.places,
            taken=statistics.taken,
            held=statistics.held,
            waiting=statistics.waiting,
            checked_in=statistics.checked_in,
            no_shows=statistics.no_shows,
            slot_id=statistics.slot_id,
        )


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

    @classmethod
    def from_domain(cls, statistics: campaign_reports.GroupStatistics) -> Self:
        """Show the statistics of a group."""
        return cls(
            group=statistics.group,
            user_count=statistics.user_count,
            booked=statistics.booked,
            bookings=statistics.bookings,
            waiting=statistics.waiting,
        )


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

    @classmethod
    def from_domain(cls, point: campaign_reports.TimeSeriesPoint) -> Self:
        """Show one interval of a time series."""
        return cls(at=point.at, booked=point.booked, given_back=point.given_back, taken=point.taken)


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
    slot_statistics: strawberry.Private[Sequence[campaign_reports.SlotStatistics]]
    group_statistics: strawberry.Private[Sequence[campaign_reports.GroupStatistics]]

    @field(description="The statistics of each slot, by start.")
    def slots(
        self, first: First = DEFAULT_FIRST, after: After = None
    ) -> Connection[SlotStatistics]:
        position = decode_position(SLOT_STATISTICS_CURSOR, after)
        page, has_more = _page_after(
            self.slot_statistics,
            _slot_sort_key,
            (position.start, position.id) if position else None,
            require_valid_first(first),
        )
        items = [
            (
                encode_position(SLOT_STATISTICS_CURSOR, Position(*_slot_sort_key(statistics))),
                SlotStatistics.from_domain(statistics),
            )
            for statistics in page
        ]
        return Connection[SlotStatistics].from_items(items, has_more=has_more, after=after)

    @field(
        description="The statistics of each group that is eligible, has a booking or waits, by "
        "name."
    )
    def groups(
        self, first: First = DEFAULT_FIRST, after: After = None
    ) -> Connection[GroupStatistics]:
        page, has_more = _page_after(
            self.group_statistics,
            _group_sort_key,
            decode_name(GROUP_STATISTICS_CURSOR, after),
            require_valid_first(first),
        )
        items = [
            (
                encode_cursor(GROUP_STATISTICS_CURSOR, statistics.group),
                GroupStatistics.from_domain(statistics),
            )
            for statistics in page
        ]
        return Connection[GroupStatistics].from_items(items, has_more=has_more, after=after)

    @classmethod
    def from_domain(cls, statistics: campaign_reports.CampaignStatistics) -> Self:
        """Show the statistics of a campaign."""
        points = statistics.time_series
        return cls(
            at=statistics.at,
            slot_count=len(statistics.slots),
            places=statistics.places,
            taken=statistics.taken,
            held=statistics.held,
            free=statistics.places - statistics.taken,
            waiting=statistics.waiting,
            checked_in=statistics.checked_in,
            no_shows=statistics.no_shows,
            user_count=statistics.user_count,
            time_series=None
            if points is None
            else [StatisticsPoint.from_domain(point) for point in points],
            slot_statistics=statistics.slots,
            group_statistics=statistics.groups,
        )


def _slot_sort_key(statistics: campaign_reports.SlotStatistics) -> tuple[datetime, str]:
    return statistics.start, statistics.slot_id


def _group_sort_key(statistics: campaign_reports.GroupStatistics) -> str:
    return statistics.group


def _page_after(
    items: Sequence[Item], key: Callable[[Item], SortKey], last_key: SortKey | None, first: int
) -> tuple[Sequence[Item], bool]:
    """Return the items that follow the last key, and whether more items follow them."""
    start = 0 if last_key is None else bisect_right(items, last_key, key=key)
    return items[start : start + first], len(items) > start + first
